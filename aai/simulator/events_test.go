package simulator

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// published returns the events since a sequence number as "ACTION path", with the path below /aai/vN.
func (h *harness) published(since uint64) []string {
	list := []string{}
	for _, e := range h.Events(since) {
		list = append(list, string(e.Header.Action)+" "+strings.TrimPrefix(e.Header.EntityLink, "/aai/v32"))
	}
	return list
}

// lastEvent returns the sequence number of the newest event.
func (h *harness) lastEvent() uint64 {
	events := h.Events(0)
	if len(events) == 0 {
		return 0
	}
	return events[len(events)-1].Sequence
}

func TestEventsAreShapedLikeThoseOfAAI(t *testing.T) {
	h := newHarness(t, Options{})
	h.AdvanceClock(7*time.Millisecond + time.Hour)
	h.must(call{method: "PUT", path: "/aai/v24" + pod, body: linked(vnf), header: map[string]string{
		"X-FromAppId": "app", "X-ONAP-RequestID": "request-1",
	}})
	h.must(delete1(pod+"?resource-version="+h.version(pod), ""))
	got := decodeInto[[]map[string]any](t, h.control("GET", "/__sim/events", "").body)
	diff(t, "events", 4, len(got))
	version := strconv.FormatInt(base.Add(time.Hour+7*time.Millisecond).UnixMilli(), 10)
	entity := func(relationships string) string {
		return `{"cloud-owner":"owner","cloud-region-id":"region","resource-version":"` + h.version(region) + `","orchestration-disabled":false,"in-maint":false,
			"tenants":{"tenant":[{"tenant-id":"t1","tenant-name":"t1-name","resource-version":"` + h.version(tenant) + `",
			"k8s-resources":{"k8s-resource":[{"id":"pod-1",` + podFields + `,"resource-version":"` + version + `"` + relationships + `}]}}]}}`
	}
	const toVNF = `,"relationship-list":{"relationship":[{"related-to":"generic-vnf","relationship-label":"tosca.relationships.HostedOn",
		"related-link":"/aai/v32/network/generic-vnfs/generic-vnf/vnf-1","relationship-data":[{"relationship-key":"generic-vnf.vnf-id","relationship-value":"vnf-1"}],
		"related-to-property":[{"property-key":"generic-vnf.vnf-name","property-value":"vnf-1-name"}]}]}`
	event := func(sequence int, action, id, source, entity string) map[string]any {
		return decodeInto[map[string]any](t, fmt.Sprintf(`{"sequence":%d,"cambria.partition":"AAI","event-header":{"severity":"NORMAL","entity-type":"k8s-resource",
			"top-entity-type":"cloud-region","entity-link":"/aai/v32%s","event-type":"AAI-EVENT","domain":"devINT1","action":%q,"sequence-number":"0",
			"id":%q,"source-name":%q,"version":"v32","timestamp":"20251120-01:53:20:007"},"entity":%s}`, sequence, pod, action, id, source, entity))
	}
	diff(t, "creation, whatever version it was in", event(1, "CREATE", "request-1", "app", entity(toVNF)), got[0])
	diff(t, "deletion, with what was there", event(3, "DELETE", "tx-1", "test", entity(toVNF)), got[2])
	diff(t, "the other end", []any{"UPDATE", "generic-vnf", "generic-vnf", "/aai/v32" + vnf}, func() []any {
		header := as[map[string]any](t, got[1]["event-header"])
		return []any{header["action"], header["entity-type"], header["top-entity-type"], header["entity-link"]}
	}())
	diff(t, "its entity has no wrapping", "vnf-1", as[map[string]any](t, got[1]["entity"])["vnf-id"])
}

func TestWhatIsPublished(t *testing.T) {
	created := []call{put1(pod, linked(vnf))}
	again := resources + "/k8s-resource/again"
	for name, tc := range map[string]struct {
		given []call
		call  call
		want  []string
	}{
		"create":                {call: put1(pod, podBody), want: []string{"CREATE " + pod}},
		"update without change": {given: created, call: patch1(pod, `{}`), want: []string{"UPDATE " + pod}},
		"relationships changed": {
			given: created, call: patch1(pod, `{"relationship-list":{"relationship":[{"related-link":"`+otherVNF+`"}]}}`),
			want: []string{"UPDATE " + pod, "UPDATE " + vnf, "UPDATE " + otherVNF},
		},
		"edge again":             {given: created, call: put1(podEdge, `{"related-link":"`+vnf+`"}`), want: []string{"UPDATE " + pod, "UPDATE " + vnf}},
		"edge from other end":    {given: created, call: delete1(vnf+relationshipPath, `{"related-link":"`+pod+`"}`), want: []string{"UPDATE " + vnf, "UPDATE " + pod}},
		"read":                   {given: created, call: call{path: pod}, want: []string{}},
		"refused":                {given: created, call: put1(pod, podBody), want: []string{}},
		"refused in the middle":  {call: bulk1(operations(op("put", pod, linked(vnf)), op("delete", again, `{}`))), want: []string{}},
		"nested":                 {call: put1(vnf+"3", `{"vnf-type":"t","vf-modules":{"vf-module":[{"vf-module-id":"m"}]}}`), want: []string{"CREATE " + vnf + "3", "CREATE " + vnf + "3/vf-modules/vf-module/m"}},
		"deletion takes along":   {given: created, call: delete1(vnf+"?resource-version="+anyVersion, ""), want: []string{"DELETE " + vnf, "DELETE " + module, "UPDATE " + pod}},
		"bulk in order":          {call: bulk1(operations(op("put", again, podBody), op("put", pod, podBody))), want: []string{"CREATE " + again, "CREATE " + pod}},
		"twice in one is one":    {call: bulk1(operations(op("put", pod, podBody), op("patch", pod, `{"kind":"Job"}`))), want: []string{"CREATE " + pod}},
		"came and went":          {call: bulk1(operations(op("put", pod, podBody), op("delete", pod+"?resource-version="+anyVersion, `{}`))), want: []string{}},
		"went and came":          {given: created, call: bulk1(operations(op("delete", pod+"?resource-version="+anyVersion, `{}`), op("put", pod, podBody))), want: []string{"CREATE " + pod, "UPDATE " + vnf}},
		"the last state of both": {given: created, call: bulk1(operations(op("patch", vnf, `{}`), op("put", podEdge, `{"related-link":"`+vnf+`"}`))), want: []string{"UPDATE " + vnf, "UPDATE " + pod}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Options{})
			for _, c := range tc.given {
				h.must(c)
			}
			before := h.lastEvent()
			h.send(tc.call)
			diff(t, "events", tc.want, h.published(before))
		})
	}
}

func TestDeletionsAreToldFromTheTopDown(t *testing.T) {
	h := newHarness(t, Options{})
	want := []string{"DELETE " + otherVNF}
	for i := range 9 {
		h.seed(VFModule("vnf-2", fmt.Sprint("m", i)))
		want = append(want, fmt.Sprint("DELETE ", otherVNF, "/vf-modules/vf-module/m", i))
	}
	h.must(delete1(otherVNF+"?resource-version="+anyVersion, ""))
	diff(t, "events", want, h.published(0))
}

func TestEventsAreOfTheDefaultVersionAndInUTC(t *testing.T) {
	h := newHarness(t, Options{
		Versions: []string{"v24", "v30", "v32"}, DefaultVersion: "v30",
		Clock: func() time.Time { return base.In(time.FixedZone("east", 7200)) },
	})
	h.must(patch1(vnf, "{}"))
	header := h.Events(0)[0].Header
	diff(t, "version", "v30", header.Version)
	diff(t, "link", "/aai/v30"+vnf, header.EntityLink)
	diff(t, "timestamp", "20251120-00:53:20:000", header.Timestamp)
}

func TestEventsNameWhoWrote(t *testing.T) {
	for name, tc := range map[string]struct {
		header map[string]string
		want   string
	}{
		"application":          {nil, "test"},
		"partner":              {map[string]string{"X-ONAP-PartnerName": "SO.BPMN"}, "SO"},
		"A&AI is no partner":   {map[string]string{"X-ONAP-PartnerName": "AAI.x"}, "test"},
		"source of truth":      {map[string]string{"X-SourceOfTruth": "truth"}, "truth"},
		"truth before partner": {map[string]string{"X-SourceOfTruth": "truth", "X-ONAP-PartnerName": "SO"}, "truth"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Options{})
			h.must(call{method: "PUT", path: pod, body: podBody, header: tc.header})
			diff(t, "source-name", tc.want, h.Events(0)[0].Header.SourceName)
		})
	}
	h := newHarness(t, Options{})
	if err := h.Act(Action{Action: "patch", URI: vnf}); err != nil {
		t.Fatal(err)
	}
	diff(t, "of somebody else", "actor", h.Events(0)[0].Header.SourceName)
}

func TestEventsCanBeShallowAndOneSided(t *testing.T) {
	h := newHarness(t, Options{OneSidedEvents: true})
	h.must(put1(pod, linked(vnf)))
	diff(t, "creation", []string{"CREATE " + pod}, h.published(0))
	h.must(bulk1(operations(op("patch", vnf, "{}"), op("put", podEdge, `{"related-link":"`+vnf+`"}`), op("patch", pod, "{}"))))
	diff(t, "written and other end at once", []string{"UPDATE " + vnf, "UPDATE " + pod}, h.published(1))
	h.must(delete1(vnf+"?resource-version="+anyVersion, ""))
	diff(t, "what goes along was no other end", []string{"DELETE " + vnf, "DELETE " + module}, h.published(3))
	for shallow, want := range map[bool]bool{true: false, false: true} {
		h := newHarness(t, Options{ShallowEvents: shallow})
		h.must(patch1(vnf, `{}`))
		_, has := h.Events(0)[0].Entity["vf-modules"]
		diff(t, fmt.Sprintf("children with shallow %t", shallow), want, has)
	}
}

func TestEventsShowTheMomentTheyAreOf(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(pod, linked(vnf)))
	h.must(patch1(pod, `{"kind":"Job","relationship-list":{"relationship":[]}}`))
	events := h.Events(0)
	kind := func(e Event) any {
		tenants := as[[]map[string]any](t, as[map[string]any](t, e.Entity["tenants"])["tenant"])
		pods := as[[]map[string]any](t, as[map[string]any](t, tenants[0]["k8s-resources"])["k8s-resource"])
		_, related := pods[0]["relationship-list"]
		return fmt.Sprint(pods[0]["kind"], related)
	}
	diff(t, "created", any("Podtrue"), kind(events[0]))
	diff(t, "updated", any("Jobfalse"), kind(events[2]))
}

func TestEventsAreBounded(t *testing.T) {
	h := newHarness(t, Options{EventLogSize: 3})
	for range 5 {
		h.must(patch1(vnf, `{}`))
	}
	sequences := []uint64{}
	for _, e := range h.Events(0) {
		sequences = append(sequences, e.Sequence)
	}
	diff(t, "events kept", []uint64{3, 4, 5}, sequences)
	diff(t, "since 4", 1, len(h.Events(4)))
	diff(t, "over the wire", 1, len(decodeInto[[]Event](t, h.control("GET", "/__sim/events?since=4", "").body)))
	diff(t, "none", "[]\n", h.control("GET", "/__sim/events?since=5", "").body)
	diff(t, "since nonsense", http.StatusBadRequest, h.control("GET", "/__sim/events?since=-1", "").status)

	l := &eventLog{limit: 1000}
	heavy := &snapshot{node: &node{place: &place{typ: typeNamed("generic-vnf", newestSchema)}}, links: make([]neighbour, eventWeight/4)}
	for range 5 {
		l.add(eventRecord{entity: heavy})
	}
	diff(t, "heavy events kept", 3, len(l.records))
}

// Who replays the events has the inventory.
func TestRandomHistoriesCanBeReplayedFromEvents(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := &history{harness: newHarness(t, Options{}), rt: rt}
		replica := map[string]string{} // entity-link -> resource-version
		for _, f := range h.State() {
			replica[f.URI] = as[string](t, f.Body["resource-version"])
		}
		for range rapid.IntRange(1, 20).Draw(rt, "length") {
			h.send(h.request())
		}
		for i, e := range h.Events(0) {
			if e.Sequence != uint64(i+1) {
				rt.Fatalf("event %d has sequence number %d", i, e.Sequence)
			}
			link := strings.TrimPrefix(e.Header.EntityLink, "/aai/v32")
			_, known := replica[link]
			switch e.Header.Action {
			case EventUpdate:
				if !known {
					rt.Fatalf("update of %s, which is not there", link)
				}
				replica[link] = innermost(t, e)
			case EventCreate:
				replica[link] = innermost(t, e)
			case EventDelete:
				if !known {
					rt.Fatalf("deletion of %s, which is not there", link)
				}
				delete(replica, link)
			}
		}
		want := map[string]string{}
		for _, f := range h.State() {
			want[f.URI] = as[string](t, f.Body["resource-version"])
		}
		if fmt.Sprint(want) != fmt.Sprint(replica) {
			rt.Fatalf("replayed %v, want %v", replica, want)
		}
	})
}

// innermost returns the resource-version of the node that an event is about.
func innermost(t *testing.T, e Event) string {
	t.Helper()
	entity := e.Entity
	target, err := parsePath(trimVersion("/aai", e.Header.EntityLink), newestSchema)
	if err != nil {
		t.Fatal(err)
	}
	var chain []*nodeType
	for p := target.node; p.parent != nil; p = p.parent {
		chain = append([]*nodeType{p.typ}, chain...)
	}
	for _, typ := range chain {
		entity = as[[]map[string]any](t, as[map[string]any](t, entity[typ.container])[typ.name])[0]
	}
	return as[string](t, entity["resource-version"])
}
