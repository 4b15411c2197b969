package monitor

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/healthscope/healthscope/healthscope/bundle"
)

func TestPackKeepsTheObject(t *testing.T) {
	t.Parallel()
	original := object("ns", "a", "one", "7")
	original.Object["spec"] = map[string]any{
		"replicas": int64(3), "ratio": 0.5, "paused": false, "nothing": nil, "text": "<&>\u2028",
		"list": []any{int64(1), "two", map[string]any{}},
	}
	p, err := pack(original.DeepCopy(), configMap, testKey)
	if err != nil {
		t.Fatalf("pack: %v", err)
	}
	got, err := p.unpack()
	if err != nil {
		t.Fatalf("unpack: %v", err)
	}
	if diff := cmp.Diff(original.Object, got.Object); diff != "" {
		t.Errorf("the object differs after packing (-want +got):\n%s", diff)
	}
	if p.Namespace != "ns" || p.Name != "a" || p.UID != original.GetUID() || p.ResourceVersion != "7" || p.value != "one" {
		t.Errorf("packed as %s/%s, uid %q, version %q, label %q; want what the object says", p.Namespace, p.Name, p.UID, p.ResourceVersion, p.value)
	}
	if again, err := pack(p, configMap, testKey); err != nil || again != p {
		t.Errorf("packing a packed object gives (%v, %v), want the same", again, err)
	}
}

func TestUnpackNamesTheObjectItCannotRead(t *testing.T) {
	t.Parallel()
	p, err := pack(object("ns", "a", "one", "7"), configMap, testKey)
	if err != nil {
		t.Fatalf("pack: %v", err)
	}
	p.text = p.text[1:]
	const want = `cannot unpack object "ns/a"`
	if _, err := p.unpack(); err == nil || err.Error()[:len(want)] != want {
		t.Errorf("unpack: %v, want an error that begins with %s", err, want)
	}
}

// FuzzPack checks that a store returns any JSON object as it was stored, except for the stripped parts.
func FuzzPack(f *testing.F) {
	f.Add([]byte(`{"kind":"Pod","metadata":{"name":"a","labels":{"emco/deployment-id":"one"}},"spec":{"n":1,"f":1.5,"e":1e40}}`))
	f.Add([]byte(`{"metadata":{"labels":["a"],"name":7,"managedFields":{}},"data":"x"}`))
	f.Add([]byte(`{"metadata":null,"":{"\u0000":[null,[],{}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var content map[string]any
		if utiljson.Unmarshal(text, &content) != nil || content == nil {
			return
		}
		want := &unstructured.Unstructured{Object: content}
		o := want.DeepCopy()
		bundle.Redact(want)
		p, err := pack(o, configMap, testKey)
		if err != nil {
			t.Fatalf("pack: %v", err)
		}
		got, err := p.unpack()
		if err != nil {
			t.Fatalf("unpack: %v", err)
		}
		wantText, err := json.Marshal(want.Object)
		if err != nil {
			t.Fatal(err)
		}
		gotText, err := json.Marshal(got.Object)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(wantText), string(gotText)); diff != "" {
			t.Errorf("the object differs after packing (-want +got):\n%s", diff)
		}
	})
}
