package appcontext

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"sort"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Snapshot is a context, or a part of one, as it was at one revision of etcd. It never changes, is safe for concurrent
// use, and does no I/O: what its methods return is looked up in memory, and what they have to decode they decode at each
// call. Bytes that it returns belong to it and must not be changed.
//
// Several programs write a context piece by piece, and it is read at any time. So anything may be missing: a missing value
// reads as the zero value, and only a value that cannot be decoded is an error (ErrMalformed, with the key).
type Snapshot struct {
	id       string
	revision int64
	// values are in the order of their keys, as in etcd.
	values []keyValue
}

// keyValue is a key with its value, and the revision of etcd at which the value was last written.
type keyValue struct {
	key      string
	value    []byte
	revision int64
}

// NewSnapshot makes a snapshot from etcd's keys and raw values, as Range returns them or a dump holds them. All keys must
// belong to one context; those that EMCO would not write (with an empty part, or without a slash at the end) are left out.
// The revision is etcd's; every value gets it too. A snapshot without keys has no id.
func NewSnapshot(revision int64, values map[string][]byte) (*Snapshot, error) {
	s := &Snapshot{revision: revision}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		id, _, ok := splitKey(key)
		if !ok {
			continue
		}
		if len(s.values) > 0 && s.id != id {
			return nil, fmt.Errorf("cannot make snapshot: %w: keys of contexts %q and %q", ErrInvalid, s.id, id)
		}
		s.id = id
		s.values = append(s.values, keyValue{key, bytes.Clone(values[key]), revision})
	}
	return s, nil
}

// withEvents returns the snapshot with changes, which are in the order in which they were made. The revision stays.
func (s *Snapshot) withEvents(events []*clientv3.Event) *Snapshot {
	last := map[string]*clientv3.Event{}
	for _, event := range events {
		if key := string(event.Kv.Key); isKey(key) {
			last[key] = event
		}
	}
	changed := *s
	changed.values = make([]keyValue, 0, len(s.values)+len(last))
	rest := s.values
	for _, key := range slices.Sorted(maps.Keys(last)) {
		i, found := search(rest, 0, key)
		changed.values = append(changed.values, rest[:i]...)
		if rest = rest[i:]; found {
			rest = rest[1:]
		}
		if kv := last[key].Kv; last[key].Type != mvccpb.DELETE {
			changed.values = append(changed.values, keyValue{key, kv.Value, kv.ModRevision})
		}
	}
	changed.values = append(changed.values, rest...)
	return &changed
}

// search returns the index of a path among values whose keys share their first prefixLength bytes, and whether it is there.
func search(values []keyValue, prefixLength int, path string) (int, bool) {
	return slices.BinarySearchFunc(values, path, func(v keyValue, path string) int { return strings.Compare(v.key[prefixLength:], path) })
}

// find returns the value at a path, where search finds it.
func find(values []keyValue, prefixLength int, path string) (keyValue, bool) {
	i, ok := search(values, prefixLength, path)
	if !ok {
		return keyValue{}, false
	}
	return values[i], true
}

// atRevision returns the same contents with a later revision.
func (s *Snapshot) atRevision(revision int64) *Snapshot {
	later := *s
	later.revision = revision
	return &later
}

// Same reports whether two snapshots are known to hold the same, whatever their revisions: they come from one Cache, and
// nothing has changed in between. Two that are nil hold the same.
func (s *Snapshot) Same(o *Snapshot) bool {
	if s == nil || o == nil {
		return s == o
	}
	return s.id == o.id && len(s.values) == len(o.values) && (len(s.values) == 0 || &s.values[0] == &o.values[0])
}

// ID returns the context's id.
func (s *Snapshot) ID() string { return s.id }

// Revision returns the revision of etcd at which the context was as the snapshot shows it.
func (s *Snapshot) Revision() int64 { return s.revision }

// Handle returns the handle of the context.
func (s *Snapshot) Handle() Handle { return ContextHandle(s.id) }

// All returns the handles with their raw values, in the order of their keys in etcd.
func (s *Snapshot) All() iter.Seq2[Handle, []byte] {
	return func(yield func(Handle, []byte) bool) {
		for _, v := range s.values {
			if !yield(Handle(v.key), v.value) {
				return
			}
		}
	}
}

// Stored returns the raw value at a handle, and whether it is there.
func (s *Snapshot) Stored(h Handle) ([]byte, bool) {
	v, ok := find(s.values, 0, string(h))
	return v.value, ok
}

// StoredRevision returns the revision of etcd at which the value at a handle was last written; 0 when it is not there.
func (s *Snapshot) StoredRevision(h Handle) int64 {
	v, _ := find(s.values, 0, string(h))
	return v.revision
}

// Meta returns what the context was made for; the zero value when that is not recorded.
func (s *Snapshot) Meta() (CompositeAppMeta, error) {
	var m CompositeAppMeta
	err := s.root().json(&m, partMeta)
	return m, err
}

// Status returns the state of the context that rsync keeps; empty as long as rsync has not begun with it.
func (s *Snapshot) Status() (State, error) {
	text, err := s.root().status(partStatus)
	return State(text), err
}

// StatusContextID returns the id of the context under which bundles and states are kept: that of the first context of a
// deployment intent group that was updated or rolled back since, else the context's own.
func (s *Snapshot) StatusContextID() (string, error) {
	text, err := s.root().text("statusappctxid")
	if text == "" {
		return s.id, err
	}
	return text, err
}

// StopFlag reports whether rsync is to stop.
func (s *Snapshot) StopFlag() (bool, error) {
	var stop bool
	err := s.root().json(&stop, "stopflag")
	return stop, err
}

// AppOrder returns the names in the instruction that orders the apps; nil when there is none.
func (s *Snapshot) AppOrder() ([]string, error) {
	return s.root().order("apporder", partApp)
}

// Apps returns the apps in the order of the instruction, then those that it does not name, in the order of their keys. An
// order that cannot be read counts as none.
func (s *Snapshot) Apps() []App {
	order, _ := s.AppOrder()
	return listOf[App](s.root().children(order, partApp))
}

// App returns the app with a name, and whether it is there.
func (s *Snapshot) App(name string) (App, bool) {
	l, ok := s.root().child(partApp, name)
	return App{l}, ok && name != partInstruction
}

func (s *Snapshot) root() level { return level{string(s.Handle()), s, 0, len(s.values)} }

// level is a key in a snapshot, with the values at the key and below it.
type level struct {
	key      string
	snapshot *Snapshot
	// first and end bound the values in the snapshot whose keys begin with key.
	first, end int
}

func (l level) values() []keyValue {
	if l.snapshot == nil {
		return nil
	}
	return l.snapshot.values[l.first:l.end]
}

// Handle returns the handle.
func (l level) Handle() Handle { return Handle(l.key) }

// Value returns the raw value of a level below the handle, such as "status", and whether it is there.
func (l level) Value(levels ...string) ([]byte, bool) {
	v, ok := l.lookup(levels)
	return v.value, ok
}

// Revision returns the revision of etcd at which the value of a level below the handle was last written; 0 when it is
// not there.
func (l level) Revision(levels ...string) int64 {
	v, _ := l.lookup(levels)
	return v.revision
}

// lookup returns what is stored at a path.
func (l level) lookup(parts []string) (keyValue, bool) {
	return find(l.values(), len(l.key), pathOf(parts))
}

// pathOf returns the parts as the end of a key.
func pathOf(parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, "/") + "/"
}

// descend returns the level at a path, whether or not that has a value.
func (l level) descend(parts ...string) level {
	path := pathOf(parts)
	skipped, _ := search(l.values(), len(l.key), path)
	l.first += skipped
	return l.withPrefix(l.key + path)
}

// withPrefix returns the level of a key. The values of l must begin with those of the key.
func (l level) withPrefix(key string) level {
	values := l.values()
	n := sort.Search(len(values), func(i int) bool { return !strings.HasPrefix(values[i].key, key) })
	return level{key, l.snapshot, l.first, l.first + n}
}

func (l level) name() string { return path.Base(l.key) }

func (l level) json(into any, parts ...string) error {
	v, ok := l.lookup(parts)
	if !ok {
		return nil
	}
	return decode(v.key, v.value, into)
}

func (l level) text(parts ...string) (string, error) {
	v, ok := l.lookup(parts)
	if !ok {
		return "", nil
	}
	return decodeText(v.key, v.value)
}

func (l level) status(parts ...string) (string, error) {
	data, _ := l.Value(parts...)
	if word, ok := plainStatus(data); ok {
		return word, nil
	}
	var value statusValue
	err := l.json(&value, parts...)
	return value.Status, err
}

// plainStatus reads a state as EMCO writes it, {"Status":"Applied"}, without the cost of decoding any JSON: a summary
// reads thousands of them. It is false for everything else.
func plainStatus(data []byte) (string, bool) {
	rest, begins := bytes.CutPrefix(data, []byte(`{"Status":"`))
	word, ends := bytes.CutSuffix(rest, []byte(`"}`))
	for _, c := range word {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return "", false
		}
	}
	return string(word), begins && ends
}

// order reads the instruction that orders what is under a part: a JSON object in a string, whose one field is the list.
func (l level) order(field string, parts ...string) ([]string, error) {
	parts = append(parts, partInstruction, partOrder)
	text, err := l.text(parts...)
	if err != nil || text == "" {
		return nil, err
	}
	var value map[string][]string
	if err := decode(l.key+pathOf(parts), []byte(text), &value); err != nil {
		return nil, err
	}
	return value[field], nil
}

// child returns the level at a path, and whether that has a value.
func (l level) child(parts ...string) (level, bool) {
	below := l.descend(parts...)
	_, ok := below.Value()
	return below, ok
}

// children returns the levels one below a path that have values: those in the order first, then the others.
func (l level) children(order []string, parts ...string) []level {
	var found []level
	rest := l.descend(parts...)
	if _, ok := rest.Value(); ok {
		rest.first++
	}
	for rest.first < rest.end {
		key := rest.values()[0].key
		name, below, _ := strings.Cut(key[len(rest.key):], "/")
		child := rest.withPrefix(strings.TrimSuffix(key, below))
		rest.first = child.end
		if below == "" && name != partInstruction { // The child has a value: its key comes first.
			found = append(found, child)
		}
	}
	return inOrder(found, order)
}

// inOrder returns the levels whose names are in the order first, then the others.
func inOrder(levels []level, order []string) []level {
	if len(order) == 0 { // Most lists have no order. A status of thousands of clusters reads as many lists.
		return levels
	}
	others := make(map[string]level, len(levels))
	for _, l := range levels {
		others[l.name()] = l
	}
	sorted := make([]level, 0, len(levels))
	add := func(name string) {
		if l, ok := others[name]; ok {
			sorted = append(sorted, l)
			delete(others, name)
		}
	}
	for _, name := range order {
		add(name)
	}
	for _, l := range levels {
		add(l.name())
	}
	return sorted
}
