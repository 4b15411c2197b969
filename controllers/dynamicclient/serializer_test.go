package dynamicclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	restwatch "k8s.io/client-go/rest/watch"
)

// event is what a watch tells.
type event struct {
	kind   string
	object runtime.Object
}

func usual() runtime.NegotiatedSerializer {
	return dynamic.ConfigFor(&rest.Config{}).NegotiatedSerializer
}

// decoder returns the decoder that client-go makes for the body of a watch.
func decoder(t testing.TB, s runtime.NegotiatedSerializer, body io.Reader) *restwatch.Decoder {
	t.Helper()
	object, stream, framer, err := runtime.NewClientNegotiator(s, schema.GroupVersion{}).StreamDecoder("application/json", nil)
	if err != nil {
		t.Fatal(err)
	}
	return restwatch.NewDecoder(streaming.NewDecoder(framer.NewFrameReader(io.NopCloser(body)), stream), object)
}

// read returns the events of a stream, and what ended it.
func read(t testing.TB, s runtime.NegotiatedSerializer, stream string) (events []event, err error) {
	t.Helper()
	d := decoder(t, s, strings.NewReader(stream))
	for {
		kind, object, err := d.Decode()
		if err != nil {
			return events, err
		}
		events = append(events, event{kind: string(kind), object: object})
	}
}

// compare reads a stream with the decoders of client-go and with ours, and wants the same of both.
func compare(t *testing.T, stream string) []event {
	t.Helper()
	want, wantErr := read(t, usual(), stream)
	got, gotErr := read(t, serializer{usual()}, stream)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("of the stream %s\nour decoders read  %+v\nclient-go's decoders %+v", stream, got, want)
	}
	if gotErr.Error() != wantErr.Error() {
		t.Errorf("the stream %s\nended for our decoders with     %v\nfor those of client-go with %v", stream, gotErr, wantErr)
	}
	return got
}

// streams are watches of all kinds, with how many events can be read of each.
var streams = map[string]struct {
	stream string
	events int
}{
	"events": {`{"type":"ADDED","object":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","generation":3},"spec":{"replicas":2,"ratio":0.5,"text":"\"}\\"}}}
{"type":"MODIFIED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0"},"items":[{"kind":"no list"}]}}
{"type":"DELETED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0"}}}
{"type":"BOOKMARK","object":{"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}
`, 4},
	"error":            {`{"type":"ERROR","object":{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Expired","code":410}}`, 1},
	"blanks":           {"{ \"type\" : \"ADDED\" , \"object\" : { \"apiVersion\" : \"v1\" , \"kind\" : \"Pod\" } }\n{\"type\":\"ADDED\",\"object\":{\n\"apiVersion\":\"v1\",\"kind\":\"Pod\"\n}\n}", 2},
	"another order":    {`{"object":{"apiVersion":"v1","kind":"Pod"},"type":"ADDED"}`, 1},
	"more members":     {`{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod"},"more":{"a":"}"}}`, 1},
	"two objects":      {`{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod"},"object":{"apiVersion":"v1","kind":"Service"}}`, 1},
	"nothing between":  {`{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod"}}{"type":"DELETED","object":{"apiVersion":"v1","kind":"Pod"}}`, 2},
	"an escaped type":  {`{"type":"\u0041DDED","object":{"apiVersion":"v1","kind":"Pod"}}`, 1},
	"a confusing type": {`{"type":"ADDED\",\"object\":{}","object":{"apiVersion":"v1","kind":"Pod"}}`, 0},
	"an unknown type":  {`{"type":"CHANGED","object":{"apiVersion":"v1","kind":"Pod"}}`, 0},
	"no type":          {`{"object":{"apiVersion":"v1","kind":"Pod"}}`, 0},
	"no object":        {`{"type":"ADDED"}`, 0},
	"null":             {`{"type":"ADDED","object":null}`, 0},
	"a list":           {`{"type":"ADDED","object":[{"apiVersion":"v1","kind":"Pod"}]}`, 0},
	"a text":           {`{"type":"ADDED","object":"Pod"}`, 0},
	"no kind":          {`{"type":"ADDED","object":{"apiVersion":"v1"}}`, 0},
	"no version":       {`{"type":"ADDED","object":{"kind":"Pod"}}`, 0},
	"a bad version":    {`{"type":"ADDED","object":{"apiVersion":"a/b/c","kind":"Pod"}}`, 0},
	"a bad kind":       {`{"type":"ADDED","object":{"apiVersion":"v1","kind":5}}`, 0},
	"cut off":          {`{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod"}}` + "\n" + `{"type":"ADDED","object":{"apiVersion":"v1",`, 1},
	"no JSON":          {"upstream connect error", 0},
	"broken JSON":      {`{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod","a":}}`, 0},
	"nothing":          {"", 0},
}

func TestStreamsAreReadAsClientGoReadsThem(t *testing.T) {
	for name, s := range streams {
		t.Run(name, func(t *testing.T) {
			if got := compare(t, s.stream); len(got) != s.events {
				t.Errorf("read %d events: %+v; want %d", len(got), got, s.events)
			}
		})
	}
}

// What Kubernetes writes must go the short way: on the long way everything would work, too.
func TestEventsAreTakenApart(t *testing.T) {
	for _, object := range []string{
		`{}`, `{"a":"}","b":["{",{"c":"\\"}],"d":"\"}"}`, `{"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{"json":"{\"object\":{}}"}}}`,
	} {
		for _, name := range []string{"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"} {
			written, err := json.Marshal(metav1.WatchEvent{Type: name, Object: runtime.RawExtension{Raw: []byte(object)}})
			if err != nil {
				t.Fatal(err)
			}
			if gotName, got, ok := splitEvent(written); !ok || gotName != name || string(got) != object {
				t.Errorf("of %s got %q, %s, %t; want %q, %s", written, gotName, got, ok, name, object)
			}
		}
	}
	for _, name := range []string{"another order", "more members", "two objects", "an escaped type", "a confusing type", "no object", "null", "a list", "a text"} {
		if kind, object, ok := splitEvent([]byte(streams[name].stream)); ok {
			t.Errorf("%s: got %q, %s", name, kind, object)
		}
	}
}

// deployment is a Deployment of some KB.
func deployment(name string) *unstructured.Unstructured {
	var containers []any
	for _, c := range []string{"server", "proxy", "log"} {
		var env []any
		for i := range 12 {
			env = append(env, map[string]any{"name": fmt.Sprintf("SETTING_%d", i), "value": `a "quoted" value, {in} [brackets] \ and more`})
		}
		containers = append(containers, map[string]any{"name": c, "image": "registry.example.org/telco/" + c + ":1.4.2", "env": env})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name, "namespace": "telco"},
		"spec": map[string]any{"replicas": int64(3), "template": map[string]any{"spec": map[string]any{"containers": containers}}},
	}}
}

// watched is the stream of a watch that adds so many Deployments.
func watched(t testing.TB, n int) []byte {
	t.Helper()
	var stream bytes.Buffer
	for i := range n {
		object, err := json.Marshal(deployment(fmt.Sprintf("web-%d", i)))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&stream, `{"type":"ADDED","object":%s}`+"\n", object)
	}
	return stream.Bytes()
}

func TestEveryObjectOfALongStreamIsItself(t *testing.T) {
	events := compare(t, string(watched(t, 50)))
	for i, e := range events {
		if want := deployment(fmt.Sprintf("web-%d", i)); !reflect.DeepEqual(e.object, want) {
			t.Fatalf("event %d has the object %v; want %v", i, e.object, want)
		}
	}
	if len(events) != 50 {
		t.Errorf("read %d events; want 50", len(events))
	}
}

// BenchmarkWatch compares the decoders with those of client-go.
func BenchmarkWatch(b *testing.B) {
	const n = 200
	stream := watched(b, n)
	for name, s := range map[string]runtime.NegotiatedSerializer{"client-go": usual(), "ours": serializer{usual()}} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(stream)))
			b.ReportAllocs()
			for b.Loop() {
				events, err := read(b, s, string(stream))
				if len(events) != n || !errors.Is(err, io.EOF) {
					b.Fatalf("read %d events and then %v; want %d and the end", len(events), err, n)
				}
			}
		})
	}
}

// FuzzStream wants that any stream is read as client-go reads it.
func FuzzStream(f *testing.F) {
	for _, s := range streams {
		f.Add(s.stream)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		lower := strings.ToLower(stream)
		for _, member := range []string{"kind", "apiVersion", "type", "object"} {
			if strings.Count(lower, strings.ToLower(member)) != strings.Count(stream, member) || strings.Contains(stream, `\u`) {
				t.Skip("client-go takes a member of the wrong case for one, and then not; Kubernetes writes none")
			}
		}
		for _, kind := range []string{"Status", "APIVersions", "APIGroup", "APIResourceList", "WatchEvent", "Options"} {
			if strings.Contains(stream, kind) {
				t.Skip("client-go takes these for the kinds of its own, some whatever their group and version")
			}
		}
		if objects := strings.Count(stream, `"object"`); max(strings.Count(stream, `"kind"`), strings.Count(stream, `"apiVersion"`)) > objects {
			t.Skip("of a member that is there twice, client-go wants both to be of the right type")
		}
		want, wantErr := read(t, usual(), stream)
		got, gotErr := read(t, serializer{usual()}, stream)
		if !reflect.DeepEqual(got, want) || errors.Is(gotErr, io.EOF) != errors.Is(wantErr, io.EOF) {
			t.Errorf("our decoders read %+v, then %v; client-go's %+v, then %v", got, gotErr, want, wantErr)
		}
	})
}
