package fields

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	begin = "<!-- generated fields spec: do not edit; make generate -->\n"
	end   = "<!-- end -->\n"
)

func TestUpdate(t *testing.T) {
	want := "# A page\n" + begin + "| new |\n" + end + "The rest.\n<!-- end -->\n"
	for _, page := range []string{strings.Replace(want, "new", "old", 1), strings.Replace(want, "| new |\n", "", 1), want} {
		got, err := update(page, tables{"spec": "| new |\n"})
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v, -want +got:\n%s", err, diff)
		}
	}
}

// TestUpdateOfAnotherPage: a table that is renamed, or new, must not be left out in silence.
func TestUpdateOfAnotherPage(t *testing.T) {
	for want, page := range map[string]string{
		`there is no place for the fields "spec"`: "# A page\n",
		`there are no fields "status"`:            begin + end + strings.Replace(begin, "spec", "status", 1) + end,
	} {
		if got, err := update(page, tables{"spec": "| new |\n"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("page %q, error %v; want %q", got, err, want)
		}
	}
}

func TestMeaning(t *testing.T) {
	const address = "https://github.com/healthscope/healthscope/blob/main/config/docs/"
	for _, c := range []struct {
		name, comment string
		bounds        []string
		want          string
	}{
		{"name", "name is the name.", nil, "The name."},
		{"names", "names are names\nof clusters.", []string{"required", "at most 3 entries"}, "Names of clusters. Required, at most 3 entries."},
		{"reason", "reason says why.", nil, "Why."},
		{"culprit", "culprits say why.", nil, "culprits say why."},
		{"state", "See " + address + "health.md#states, and " + address + "reasons.md.", nil, "See [health.md](health.md#states), and [reasons.md](reasons.md)."},
		{"kind", "", []string{"always `Configuration`"}, "Always `Configuration`."},
	} {
		if got := meaning(c.name, c.comment, c.bounds); got != c.want {
			t.Errorf("%s becomes %q, want %q", c.comment, got, c.want)
		}
	}
}
