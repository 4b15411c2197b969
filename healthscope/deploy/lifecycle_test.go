package deploy_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// fatal is the part of a test or a property that helpers need.
type fatal interface {
	Helper()
	Fatal(args ...any)
}

// values are the keys and values in etcd.
type values map[string]string

// apply applies writes, as the store does.
func (v values) apply(t fatal, writes []appcontext.Write) {
	t.Helper()
	for _, w := range writes {
		if w.Sidecar {
			continue
		}
		if w.Value == nil {
			delete(v, string(w.Handle))
			continue
		}
		v[string(w.Handle)] = string(encoded(t, w.Value))
	}
}

func encoded(t fatal, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// snapshot returns a snapshot of the context in the values.
func (v values) snapshot(t fatal) *appcontext.Snapshot {
	t.Helper()
	raw := map[string][]byte{}
	for key, value := range v {
		raw[key] = []byte(value)
	}
	s, err := appcontext.NewSnapshot(1, raw)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// snapshotOf returns a snapshot of one of several contexts in the values.
func (v values) snapshotOf(t fatal, id string) *appcontext.Snapshot {
	t.Helper()
	one := values{}
	for key, value := range v {
		if strings.HasPrefix(key, "/context/"+id+"/") {
			one[key] = value
		}
	}
	return one.snapshot(t)
}

// read reads a recording of EMCO's rsync: the keys and values of context 42.
func read(t fatal, name string) values {
	t.Helper()
	v := values{}
	for _, line := range lines(t, name) {
		key, value, _ := strings.Cut(line, "\t")
		v[key] = value
	}
	return v
}

func lines(t fatal, name string) []string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// TestLifecycleWritesEMCOKeys compares, for each key, the values that an instantiation and a termination write with a recording.
// A transaction writes a key once, and a value that has not changed is not written again.
func TestLifecycleWritesEMCOKeys(t *testing.T) {
	recorded := map[string][]string{}
	for _, line := range lines(t, "lifecycle.tsv") {
		fields := strings.Split(line, "\t")
		recorded[fields[1]] = append(recorded[fields[1]], fields[2])
	}
	recorded["/context/42/rsync/state/CurrentState/"] = slices.Compact(recorded["/context/42/rsync/state/CurrentState/"])
	recorded["/context/42/rsync/state/PendingTerminateFlag/"] = slices.Compact(recorded["/context/42/rsync/state/PendingTerminateFlag/"])

	written := map[string][]string{}
	var l deploy.Lifecycle
	become := func(next deploy.Lifecycle) {
		for _, w := range deploy.Changes("42", l, next) {
			if w.Sidecar {
				continue
			}
			data := []byte{}
			if w.Value != nil {
				data = encoded(t, w.Value)
			}
			written[string(w.Handle)] = append(written[string(w.Handle)], string(data))
		}
		l = next
	}
	for _, event := range []deploy.Event{deploy.EventInstantiate, deploy.EventTerminate} {
		next, err := l.Enqueue(event, "")
		if err != nil {
			t.Fatal(err)
		}
		become(next)
		next, begun, ok := l.Next()
		if !ok || begun.Event != event {
			t.Fatalf("Next: %q, %t; want %q", begun.Event, ok, event)
		}
		become(next)
		become(l.Finish(true))
	}
	if diff := cmp.Diff(recorded, written); diff != "" {
		t.Errorf("written, + what is not as recorded:\n%s", diff)
	}
}

func TestEventsThatCannotBe(t *testing.T) {
	tests := map[string]struct {
		current appcontext.State
		stop    bool
		queue   []deploy.Event
		want    []deploy.EventStatus
		state   appcontext.State
		begins  deploy.Event
	}{
		"a terminated context stays so":                      {current: "Terminated", queue: []deploy.Event{"Terminate"}, want: []deploy.EventStatus{"Skip"}, state: "Terminated"},
		"a created context cannot be terminated":             {current: "Created", queue: []deploy.Event{"Terminate"}, want: []deploy.EventStatus{"Skip"}, state: "Created"},
		"a stop ends what waits":                             {current: "Created", stop: true, queue: []deploy.Event{"Instantiate"}, want: []deploy.EventStatus{"Skip"}, state: "InstantiateFailed"},
		"a stop ends what was begun":                         {current: "Instantiating", stop: true, queue: []deploy.Event{"Instantiate"}, want: []deploy.EventStatus{"Error"}, state: "InstantiateFailed"},
		"a stop ends a termination":                          {current: "Instantiated", stop: true, queue: []deploy.Event{"Terminate"}, want: []deploy.EventStatus{"Skip"}, state: "TerminateFailed"},
		"a termination interrupts what was begun":            {current: "Instantiating", queue: []deploy.Event{"Instantiate", "Terminate"}, want: []deploy.EventStatus{"Error", "Pending"}, state: "Terminating", begins: "Terminate"},
		"a termination comes before what waits":              {current: "Instantiated", queue: []deploy.Event{"Instantiate", "Terminate"}, want: []deploy.EventStatus{"Skip", "Pending"}, state: "Terminating", begins: "Terminate"},
		"an event that was begun is not ended":               {current: "Instantiating", queue: []deploy.Event{"Instantiate"}, want: []deploy.EventStatus{"Pending"}, state: "Instantiating", begins: "Instantiate"},
		"a termination that cannot begin interrupts nothing": {current: "Created", queue: []deploy.Event{"Dance", "Terminate", "Instantiate"}, want: []deploy.EventStatus{"Skip", "Skip", "Pending"}, state: "Instantiating", begins: "Instantiate"},
		"an event that nothing is known of goes by":          {current: "Created", queue: []deploy.Event{"Dance", "Instantiate"}, want: []deploy.EventStatus{"Skip", "Pending"}, state: "Instantiating", begins: "Instantiate"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := deploy.Lifecycle{Current: tt.current, Status: tt.current, Stop: tt.stop}
			if tt.current == appcontext.StateInstantiating {
				l.Desired = appcontext.StateInstantiated
			}
			for _, e := range tt.queue {
				l.Queue = append(l.Queue, deploy.QueuedEvent{Event: e, Status: deploy.EventPending})
			}
			for _, flag := range []bool{false, slices.Contains(tt.queue, deploy.EventTerminate)} { // The queue counts also without the flag.
				l.PendingTerminate = flag
				next, event, _ := l.Next()
				var got []deploy.EventStatus
				for _, e := range next.Queue {
					got = append(got, e.Status)
				}
				if !slices.Equal(got, tt.want) || next.Current != tt.state || next.Status != tt.state || event.Event != tt.begins {
					t.Errorf("flag %t: queue %v, states %q and %q, begins %q; want %v, %q, %q", flag, got, next.Current, next.Status, event.Event, tt.want, tt.state, tt.begins)
				}
				if next.PendingTerminate {
					t.Errorf("flag %t: PendingTerminateFlag is still set", flag)
				}
			}
		})
	}
}

// TestEventsBeginOnlyInAllowedStates asserts that the allowed states are those of EMCO, and in addition those in which a failed
// update is rolled back.
func TestEventsBeginOnlyInAllowedStates(t *testing.T) {
	all := []appcontext.State{
		"Created", "Instantiating", "Instantiated", "InstantiateFailed", "Terminating", "Terminated", "TerminateFailed", "Updating", "Updated", "UpdatedFailed",
	}
	instantiation := []appcontext.State{"Created", "Instantiating", "Instantiated", "InstantiateFailed"}
	for event, want := range map[deploy.Event][]appcontext.State{
		deploy.EventInstantiate: instantiation,
		deploy.EventRead:        instantiation,
		deploy.EventTerminate: {
			"Instantiating", "Instantiated", "InstantiateFailed", "Terminating", "TerminateFailed", "Updating", "Updated", "UpdatedFailed",
		},
		deploy.EventUpdate:       {"Created", "Instantiated", "InstantiateFailed", "Updated", "UpdatedFailed"}, // EMCO's: Created and Updated.
		deploy.EventUpdateDelete: {"Instantiated", "InstantiateFailed", "UpdatedFailed"},                       // EMCO's: Instantiated.
	} {
		var got []appcontext.State
		for _, state := range all {
			l := deploy.Lifecycle{Current: state, Status: state, Queue: []deploy.QueuedEvent{{Event: event, Status: deploy.EventPending}}}
			if _, _, begins := l.Next(); begins {
				got = append(got, state)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s, -want +got:\n%s", event, diff)
		}
	}
}

// TestEnqueueRejectsEventThatCannotBegin asserts that the error names the state. There is no error if an earlier event may
// change the state.
func TestEnqueueRejectsEventThatCannotBegin(t *testing.T) {
	_, err := deploy.Lifecycle{Current: appcontext.StateTerminated}.Enqueue(deploy.EventInstantiate, "")
	want := `event "Instantiate" is not possible in state "Terminated": it must be one of Created, Instantiated, InstantiateFailed, Instantiating`
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	l, err := deploy.Lifecycle{Stop: true}.Enqueue(deploy.EventInstantiate, "")
	if err != nil || l.Stop {
		t.Fatalf("after a stop: %+v, %v", l, err)
	}
	l, _, _ = l.Next()
	if l, err = l.Enqueue(deploy.EventTerminate, ""); err != nil || !l.PendingTerminate || !l.Interrupted() {
		t.Errorf("a Terminate does not interrupt: %+v, %v", l, err)
	}
	if l = l.Finish(false); l.PendingTerminate {
		t.Errorf("it still interrupts after the event has ended: %+v", l)
	}
}

func TestStopEndsPendingEventsUnlessBegun(t *testing.T) {
	waits := deploy.Lifecycle{Current: "Created", Queue: []deploy.QueuedEvent{{Event: deploy.EventInstantiate, Status: deploy.EventPending}}}
	begun, _, _ := waits.Next()
	for name, tt := range map[string]struct {
		lifecycle deploy.Lifecycle
		active    bool
		current   appcontext.State
	}{
		"no event":               {deploy.Lifecycle{}, false, "Created"},
		"an event that waits":    {waits, false, "InstantiateFailed"},
		"an event that is begun": {begun, true, "Instantiating"},
	} {
		if got := tt.lifecycle.Stopped(); !got.Stop || got.Active() != tt.active || got.Current != tt.current {
			t.Errorf("%s: %+v", name, got)
		}
	}
	v := values{"/context/42/": `"42"`, "/context/42/stopflag/": "perhaps"}
	if l, err := deploy.ReadLifecycle(v.snapshot(t)); err != nil || !l.Stop {
		t.Errorf("a stop flag that cannot be read is not set: %v", err)
	}
}

// TestEveryEventSequenceEndsInStateOfTable adds events and restarts the program at any time. No event is lost, no event is out
// of order, and the context ends in a state in which nothing is in progress.
func TestEveryEventSequenceEndsInStateOfTable(t *testing.T) {
	final := []appcontext.State{"", "Created", "Instantiated", "InstantiateFailed", "Terminated", "TerminateFailed", "Updated", "UpdatedFailed"}
	rapid.Check(t, func(t *rapid.T) {
		v := values{"/context/42/": `"42"`}
		var added []deploy.Event
		load := func() deploy.Lifecycle {
			l, err := deploy.ReadLifecycle(v.snapshot(t))
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		step := func(change func(deploy.Lifecycle) deploy.Lifecycle) {
			before := load()
			after := change(before)
			v.apply(t, deploy.Changes("42", before, after))
		}
		begin := func(l deploy.Lifecycle) deploy.Lifecycle {
			next, _, _ := l.Next()
			return next
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				event := rapid.SampledFrom([]deploy.Event{"Instantiate", "Terminate", "Update", "UpdateDelete", "Read"}).Draw(t, "event")
				step(func(l deploy.Lifecycle) deploy.Lifecycle {
					next, err := l.Enqueue(event, "")
					if err != nil {
						return l
					}
					added = append(added, event)
					return next
				})
			},
			"stop": func(t *rapid.T) {
				v["/context/42/stopflag/"] = rapid.SampledFrom([]string{"true", "false"}).Draw(t, "stop")
			},
			"replace": func(*rapid.T) {
				step(func(l deploy.Lifecycle) deploy.Lifecycle {
					next := l.ReplacedBy("43")
					if len(next.Queue) > len(l.Queue) {
						added = append(added, deploy.EventUpdateDelete)
					}
					return next
				})
			},
			"again": func(*rapid.T) {
				step(func(l deploy.Lifecycle) deploy.Lifecycle {
					next, _ := l.Retry(deploy.Retry{Index: len(l.Queue) - 1})
					return next
				})
			},
			"begin": func(*rapid.T) { step(begin) },
			"finish": func(t *rapid.T) {
				ok := rapid.Bool().Draw(t, "ok")
				step(func(l deploy.Lifecycle) deploy.Lifecycle { return begin(l).Finish(ok) })
			},
			"": func(t *rapid.T) {
				var queued []deploy.Event
				l := load()
				for _, e := range l.Queue {
					queued = append(queued, e.Event)
				}
				if !slices.Equal(queued, added) {
					t.Fatalf("queue %v, added %v", queued, added)
				}
				if _, active := v["/activecontext/42/"]; active != l.Active() {
					t.Fatalf("active %t, queue %v", active, l.Queue)
				}
			},
		})
		for range added {
			step(func(l deploy.Lifecycle) deploy.Lifecycle { return begin(l).Finish(true) })
		}
		if l := load(); l.Active() || !slices.Contains(final, l.Current) || l.PendingTerminate {
			t.Fatalf("history of %v ends with %+v", added, l)
		}
	})
}
