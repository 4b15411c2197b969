package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var bothTypes = []string{typeJSON, typeText}

// TestNegotiate covers what a header can contain besides the ranges of TestNegotiateKeepsTheRules.
func TestNegotiate(t *testing.T) {
	tests := map[string]struct{ accept, want string }{
		"no header":                            {accept: "", want: typeJSON},
		"an empty list":                        {accept: " , ,", want: typeJSON},
		"a star alone, as Java sends it":       {accept: "text/html, image/gif, *; q=.2, */*; q=.2", want: typeJSON},
		"case does not matter":                 {accept: "Text/PLAIN", want: typeText},
		"equal weights leave the choice to us": {accept: "text/plain;q=0.5, application/json;q=0.5", want: typeJSON},
		"the more specific weight counts":      {accept: "*/*, application/json;q=0.1", want: typeText},
		"refused by zero among ranges":         {accept: "*/*;q=1, text/*;q=0, application/json;q=0.000", want: ""},
		"nothing we have":                      {accept: "image/png, text/html", want: ""},
		"only problem documents":               {accept: "application/problem+json", want: ""},
		"problem documents besides":            {accept: "application/json, application/problem+json", want: typeJSON},
		"browser":                              {accept: "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", want: typeJSON},
		"our charset":                          {accept: "text/plain; charset=UTF-8", want: typeText},
		"our charset is more specific":         {accept: "text/plain;charset=utf-8;q=0.1, text/plain;q=0.9, application/json;q=0.5", want: typeJSON},
		"another charset":                      {accept: "text/plain; charset=iso-8859-1", want: ""},
		"a parameter we do not have":           {accept: "application/json;as=Table;v=v1;g=meta.k8s.io, application/json;q=0.5", want: typeJSON},
		"only with a parameter we do not have": {accept: "application/json;as=Table", want: ""},
		"a weight with many decimals":          {accept: "text/plain;q=0.33333, application/json;q=0.33332", want: typeText},
		"a weight without a leading zero":      {accept: "text/plain;q=.2", want: typeText},
		"a weight of no number is none":        {accept: "application/json;q=high, text/plain;q=0.1", want: typeText},
		"nonsense is ignored":                  {accept: "json; ;=, /, text/, text/plain", want: typeText},
		"nothing but nonsense":                 {accept: "json", want: ""},
		"the same range twice, heavier first":  {accept: "text/plain;q=0.9, application/json;q=0.5, text/plain;q=0.1", want: typeText},
		"the same range twice":                 {accept: "text/plain;q=0.1, application/json;q=0.5, text/plain;q=0.9", want: typeText},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := negotiate(tt.accept, bothTypes)
			if got != tt.want || ok != (tt.want != "") {
				t.Errorf("negotiate(%q) = %q, %t; want %q", tt.accept, got, ok, tt.want)
			}
		})
	}
}

// TestNegotiateKeepsTheRules compares negotiate with the rules of RFC 9110: the most specific range that matches an offer gives
// its weight, and the offer with the highest weight is chosen; of equal weights, the first offer.
func TestNegotiateKeepsTheRules(t *testing.T) {
	ranges := []string{"*/*", "application/*", "text/*", "application/json", "text/plain", "image/png"}
	levels := map[string][]string{
		typeJSON: {"application/json", "application/*", "*/*"},
		typeText: {"text/plain", "text/*", "*/*"},
	}
	rapid.Check(t, func(t *rapid.T) {
		offers := rapid.Permutation(bothTypes).Draw(t, "offers")
		chosen := rapid.SliceOfNDistinct(rapid.SampledFrom(ranges), 0, 5, rapid.ID).Draw(t, "ranges")
		weights := map[string]int{}
		elements := make([]string, 0, len(chosen))
		for _, r := range chosen {
			weights[r] = rapid.IntRange(0, 1000).Draw(t, "weight")
			elements = append(elements, fmt.Sprintf("%s;q=%d.%03d", r, weights[r]/1000, weights[r]%1000))
		}
		want, most := "", 0
		for _, offer := range offers {
			i := slices.IndexFunc(levels[offer], func(r string) bool { return slices.Contains(chosen, r) })
			if i >= 0 && weights[levels[offer][i]] > most {
				want, most = offer, weights[levels[offer][i]]
			}
		}
		if len(chosen) == 0 {
			want = offers[0]
		}
		accept := strings.Join(elements, ", ")
		if got, _ := negotiate(accept, offers); got != want {
			t.Errorf("negotiate(%q) of %q = %q, want %q", accept, offers, got, want)
		}
	})
}

// FuzzNegotiate asserts that negotiate never returns a type that is not offered, and that a range that matches no offer changes
// nothing.
func FuzzNegotiate(f *testing.F) {
	for _, seed := range []string{"", "*/*", "text/plain;q=0.5, application/json", `a/b;x="`, "*;q=.2", "application/json;charset=utf-8", ",,;", "\\\"", "text/plain;q=1;q=1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, accept string) {
		got, ok := negotiate(accept, bothTypes)
		if ok != slices.Contains(bothTypes, got) {
			t.Fatalf("negotiate(%q) = %q, %t", accept, got, ok)
		}
		if strings.Trim(accept, ", ") == "" {
			return
		}
		if more, okMore := negotiate("image/png, "+accept, bothTypes); more != got || okMore != ok {
			t.Errorf("negotiate(%q) = %q, %t; with an image before it %q, %t", accept, got, ok, more, okMore)
		}
	})
}
