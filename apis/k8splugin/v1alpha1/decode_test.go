package v1alpha1_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

func TestStatusDecodes(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	cases := map[string]struct {
		text string
		want k8spluginv1alpha1.ResourceBundleStateStatus
	}{
		"nothing": {`{}`, k8spluginv1alpha1.ResourceBundleStateStatus{}},
		"null":    {`null`, k8spluginv1alpha1.ResourceBundleStateStatus{}},
		"lists as they came": {
			`{"ready":false,"resourceCount":3,"podStatuses":[ {"b":1.0, "a":null} ],"serviceStatuses":null,"csrStatuses":[]}`,
			k8spluginv1alpha1.ResourceBundleStateStatus{ResourceCount: 3, PodStatuses: []byte(`[ {"b":1.0, "a":null} ]`), CSRStatuses: []byte(`[]`)},
		},
		"our own": {
			`{"ready":true,"resourceCount":1,"summary":{"state":"Ready","total":1,"ready":1},"truncated":true,
			  "resources":[{"kind":"Pod","name":"p","state":"Ready","since":"2026-03-01T12:00:00Z","owner":{"kind":"Job","name":"j"},"desired":2}]}`,
			k8spluginv1alpha1.ResourceBundleStateStatus{
				Ready: true, ResourceCount: 1, Truncated: true, Summary: &k8spluginv1alpha1.ResourceCounts{State: "Ready", Total: 1, Ready: 1},
				Resources: []k8spluginv1alpha1.ResourceHealth{{Kind: "Pod", Name: "p", State: "Ready", Since: &since, Owner: &k8spluginv1alpha1.ResourceOwner{Kind: "Job", Name: "j"}, Desired: new(int32(2))}},
			},
		},
		"fields of the wrong type": {
			`{"ready":"yes","resourceCount":1.5,"truncated":[],"podStatuses":"text","resources":{},"serviceStatuses":[{}]}`,
			k8spluginv1alpha1.ResourceBundleStateStatus{
				PodStatuses: []byte(`"text"`), ServiceStatuses: []byte(`[{}]`), Malformed: []string{"ready", "resourceCount", "resources", "truncated"},
			},
		},
		"some entries that cannot be read": {
			`{"ready":true,"resources":[5,{"kind":"Pod","name":"a"},{"kind":7},{"kind":"Pod","name":"b","since":"yesterday"},null]}`,
			k8spluginv1alpha1.ResourceBundleStateStatus{
				Ready: true, Malformed: []string{"resources"}, Resources: []k8spluginv1alpha1.ResourceHealth{{Kind: "Pod", Name: "a"}, {}},
			},
		},
		"a status that is a list":   {`[1,2]`, k8spluginv1alpha1.ResourceBundleStateStatus{Malformed: []string{"status"}}},
		"a status that is a string": {`"fine"`, k8spluginv1alpha1.ResourceBundleStateStatus{Malformed: []string{"status"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := k8spluginv1alpha1.ResourceBundleStateStatus{Truncated: true, Malformed: []string{"left over"}}
			if err := json.Unmarshal([]byte(tc.text), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBrokenJSONFails(t *testing.T) {
	for _, text := range []string{``, `{`, `{"ready":}`, `{"ready":true} trailing`} {
		if err := new(k8spluginv1alpha1.ResourceBundleStateStatus).UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%q decodes", text)
		}
	}
}

func TestASelectorThatCannotBeReadSelectsNothing(t *testing.T) {
	cases := map[string]struct {
		text string
		want k8spluginv1alpha1.ResourceBundleStateSpec
	}{
		"labels":                {`{"selector":{"matchLabels":{"emco/deployment-id":"17-shop"}}}`, k8spluginv1alpha1.ResourceBundleStateSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"emco/deployment-id": "17-shop"}}}},
		"none":                  {`{}`, k8spluginv1alpha1.ResourceBundleStateSpec{}},
		"a string":              {`{"selector":"all"}`, k8spluginv1alpha1.ResourceBundleStateSpec{}},
		"labels of numbers":     {`{"selector":{"matchLabels":{"a":"b","c":1}}}`, k8spluginv1alpha1.ResourceBundleStateSpec{}},
		"a spec that is a list": {`[]`, k8spluginv1alpha1.ResourceBundleStateSpec{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got k8spluginv1alpha1.ResourceBundleStateSpec
			if err := json.Unmarshal([]byte(tc.text), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOneBadBundleDoesNotBreakAList checks that a list with an invalid bundle can be decoded, because a client decodes a list as
// a whole.
func TestOneBadBundleDoesNotBreakAList(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := k8spluginv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	text := `{"apiVersion":"k8splugin.io/v1alpha1","kind":"ResourceBundleStateList","metadata":{"resourceVersion":"9"},"items":[
	  {"metadata":{"name":"bad"},"spec":{"selector":[]},"status":{"ready":"no","resourceCount":"x","podStatuses":17,"resources":"none","summary":[]}},
	  {"metadata":{"name":"good"},"spec":{"selector":{"matchLabels":{"a":"b"}}},"status":{"ready":true,"resourceCount":2,"podStatuses":[{"kind":"Pod"}]}}]}`
	object, _, err := serializer.NewCodecFactory(scheme).UniversalDeserializer().Decode([]byte(text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	list, ok := object.(*k8spluginv1alpha1.ResourceBundleStateList)
	if !ok || len(list.Items) != 2 {
		t.Fatalf("decoded %T", object)
	}
	bad, good := list.Items[0], list.Items[1]
	want := []string{"ready", "resourceCount", "resources", "summary"}
	if diff := cmp.Diff(want, bad.Status.Malformed); diff != "" || bad.Name != "bad" || string(bad.Status.PodStatuses) != "17" {
		t.Errorf("bad bundle %q with pods %s, malformed (-want +got):\n%s", bad.Name, bad.Status.PodStatuses, diff)
	}
	if !good.Status.Ready || good.Status.ResourceCount != 2 || string(good.Status.PodStatuses) != `[{"kind":"Pod"}]` || good.Spec.Selector.MatchLabels["a"] != "b" {
		t.Errorf("good bundle %+v", good)
	}
}

func TestRawListsDoNotShareMemory(t *testing.T) {
	text := []byte(`{"podStatuses":[{"kind":"Pod"}]}`)
	var status k8spluginv1alpha1.ResourceBundleStateStatus
	if err := json.Unmarshal(text, &status); err != nil {
		t.Fatal(err)
	}
	copied := status.DeepCopy()
	for i := range text {
		text[i] = 'x'
	}
	copied.PodStatuses[1] = 'y'
	if got := string(status.PodStatuses); got != `[{"kind":"Pod"}]` {
		t.Errorf("the list is %s", got)
	}
}

func TestListsNamesEveryList(t *testing.T) {
	var status k8spluginv1alpha1.ResourceBundleStateStatus
	for name, list := range status.Lists() {
		*list = []byte(`["` + name + `"]`)
	}
	encoded, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &fields); err != nil {
		t.Fatal(err)
	}
	lists := 0
	for name, value := range fields {
		if strings.HasSuffix(name, "Statuses") {
			lists++
			if string(value) != `["`+name+`"]` {
				t.Errorf("%s is %s", name, value)
			}
		}
	}
	if lists != 11 {
		t.Errorf("%d lists", lists)
	}
}

// FuzzStatusDecode checks that any valid JSON can be decoded, and that the result is the same when it is encoded and decoded again.
func FuzzStatusDecode(f *testing.F) {
	for _, text := range []string{
		`{}`, `null`, `[]`, `{"ready":false,"resourceCount":1,"podStatuses":[{"kind":"Pod"}],"serviceStatuses":null}`,
		`{"summary":{"state":"Ready","total":1},"resources":[{"kind":"Pod","name":"p","since":"2026-03-01T12:00:00Z"}]}`, `{"resources":[1],"ready":1}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var status k8spluginv1alpha1.ResourceBundleStateStatus
		if err := json.Unmarshal(data, &status); err != nil {
			if json.Valid(data) {
				t.Errorf("valid JSON does not decode: %v", err)
			}
			return
		}
		encoded, err := json.Marshal(status)
		if err != nil {
			t.Fatalf("what was decoded does not encode: %v", err)
		}
		var again k8spluginv1alpha1.ResourceBundleStateStatus
		if err := json.Unmarshal(encoded, &again); err != nil {
			t.Fatal(err)
		}
		second, err := json.Marshal(again)
		if err != nil || string(second) != string(encoded) || len(again.Malformed) > 0 {
			t.Errorf("%s becomes %s, malformed %q (%v)", encoded, second, again.Malformed, err)
		}
	})
}
