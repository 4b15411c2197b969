package simulator

import (
	"slices"
	"strconv"
	"sync"
	"time"
)

// Event is a message that A&AI publishes on the Kafka topic AAI-EVENT for a node that a write has touched.
type Event struct {
	// Sequence counts events from 1. It is the simulator's; A&AI's messages have no such field.
	Sequence uint64 `json:"sequence"`
	// Partition is always "AAI".
	Partition string `json:"cambria.partition"`
	// Header says what happened to which node.
	Header EventHeader `json:"event-header"`
	// Entity is the node after the write, or as it was before a deletion, inside the nodes that contain it: their own
	// properties, then the container, down to it. The values are of the same types as those of Get.
	Entity map[string]any `json:"entity"`
}

// EventAction is what happened to a node.
type EventAction string

// The actions of events.
const (
	// EventCreate is for a node that was not there.
	EventCreate EventAction = "CREATE"
	// EventUpdate is for a node that was written, also with what it was, and for the other end of a relationship that
	// came, went, or was put again.
	EventUpdate EventAction = "UPDATE"
	// EventDelete is for a node that is gone.
	EventDelete EventAction = "DELETE"
)

// EventHeader is the header of an Event. Its constants are the defaults of aai-resources' aaiconfig.properties.
type EventHeader struct {
	// Severity is always "NORMAL".
	Severity string `json:"severity"`
	// EntityType is the type of the node, like "k8s-resource".
	EntityType string `json:"entity-type"`
	// TopEntityType is the type of the outermost node that contains it, or its own.
	TopEntityType string `json:"top-entity-type"`
	// EntityLink is the path of the node, in A&AI's default version.
	EntityLink string `json:"entity-link"`
	// EventType is always "AAI-EVENT".
	EventType string `json:"event-type"`
	// Domain is always "devINT1".
	Domain string `json:"domain"`
	// Action is what happened.
	Action EventAction `json:"action"`
	// SequenceNumber is always "0", as A&AI does not count.
	SequenceNumber string `json:"sequence-number"`
	// ID is the transaction id of the request; several events may have the same.
	ID string `json:"id"`
	// SourceName is the application that wrote: X-FromAppId, or what overrides it.
	SourceName string `json:"source-name"`
	// Version is A&AI's default version, whichever the request was in.
	Version string `json:"version"`
	// Timestamp is the UTC time of the commit, like "20261120-12:00:00:000".
	Timestamp string `json:"timestamp"`
}

// eventTime is A&AI's yyyyMMdd-HH:mm:ss:SSS; Go writes milliseconds behind a dot only.
const eventTime = "20060102-15:04:05"

// eventWeight bounds the nodes and relationships that the recorded events hold together: a VNF with five thousand
// relationships weighs five thousand each time one of them is added.
const eventWeight = 1 << 17

// eventLog remembers the last events.
type eventLog struct {
	limit    int
	view     view // as which entities are shown
	oneSided bool // no events for the other ends of relationships

	mu       sync.Mutex // guards the rest
	records  []eventRecord
	weight   int
	sequence uint64
}

// eventRecord is an event whose entity is not rendered yet.
type eventRecord struct {
	sequence uint64
	header   EventHeader
	entity   *snapshot
}

// publish records what a transaction has changed. The transaction must not change any more.
func (l *eventLog) publish(t *tx, by author, now time.Time) {
	for _, c := range t.changes {
		if !c.own && l.oneSided {
			continue
		}
		entity, action := c.outcome(t, l.view)
		if action == "" {
			continue
		}
		l.add(eventRecord{entity: entity, header: EventHeader{
			Severity: "NORMAL", EntityType: c.place.typ.name, TopEntityType: entity.node.place.typ.name,
			EntityLink: l.view.link(c.place), EventType: "AAI-EVENT", Domain: "devINT1", Action: action, SequenceNumber: "0",
			ID: by.transaction, SourceName: by.app, Version: "v" + strconv.Itoa(l.view.schema), Timestamp: eventTimestamp(now),
		}})
	}
}

func eventTimestamp(now time.Time) string {
	now = now.UTC()
	millis := strconv.Itoa(1000 + now.Nanosecond()/int(time.Millisecond))
	return now.Format(eventTime) + ":" + millis[1:]
}

// outcome compares a node before and after a transaction. One that came and went leaves no event.
func (c *change) outcome(t *tx, v view) (*snapshot, EventAction) {
	now := t.nodes[c.place.uri()]
	switch {
	case now == nil && c.before == nil:
		return nil, ""
	case now == nil:
		return c.farewell, EventDelete
	case c.before == nil || c.before.id != now.id:
		return t.entity(now, v), EventCreate
	default:
		return t.entity(now, v), EventUpdate
	}
}

func (l *eventLog) add(r eventRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sequence++
	r.sequence = l.sequence
	l.records = append(l.records, r)
	l.weight += r.entity.weight()
	for len(l.records) > l.limit || l.weight > eventWeight {
		l.weight -= l.records[0].entity.weight()
		l.records[0] = eventRecord{} // free it before the slice is reallocated
		l.records = l.records[1:]
	}
}

// since returns the events with a greater sequence number.
func (l *eventLog) since(sequence uint64) []Event {
	l.mu.Lock()
	records := slices.Clone(l.records)
	l.mu.Unlock()
	events := []Event{}
	for _, r := range records {
		if r.sequence > sequence {
			events = append(events, Event{
				Sequence: r.sequence, Partition: "AAI", Header: r.header, Entity: plain(r.entity.document(l.view)),
			})
		}
	}
	return events
}

// Events returns what A&AI has published after the event with a sequence number, oldest first; 0 is for all that are
// remembered. Writes by Act are among them, fixtures are not.
func (s *Simulator) Events(since uint64) []Event { return s.events.since(since) }
