package appcontext

import (
	"bytes"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
)

// Snapshot is a context, or a part of one, as it was at one revision of etcd. It never changes, is safe for concurrent
// use, and asks nobody: what its methods return is looked up in memory, and what they have to decode they decode at each
// call. Bytes that it returns belong to it and must not be changed.
//
// A context is written piece by piece, by several programs, and read at any time. So anything may be missing: what is not
// there reads as the zero value, and only a value that cannot be decoded is an error (ErrMalformed, with the key).
type Snapshot struct {
	id       string
	revision int64
	keys     int
	root     *node
}

// NewSnapshot makes a snapshot from etcd's keys and raw values, as Range returns them or a dump holds them. All keys must
// belong to one context; those that EMCO would not write (with an empty part, or without a slash at the end) are left out.
// The revision is etcd's; every value gets it too. A snapshot without keys has no id.
func NewSnapshot(revision int64, values map[string][]byte) (*Snapshot, error) {
	s := &Snapshot{revision: revision, root: &node{}}
	for key, value := range values {
		id, parts, ok := splitKey(key)
		if !ok {
			continue
		}
		if s.keys > 0 && s.id != id {
			return nil, fmt.Errorf("cannot make snapshot: %w: keys of contexts %q and %q", ErrInvalid, s.id, id)
		}
		s.id = id
		s.keys++
		s.root.insert(parts, bytes.Clone(value), revision)
	}
	return s, nil
}

// apply returns the snapshot with a value put or, if nil, deleted.
func (s *Snapshot) apply(parts []string, value []byte, revision int64) *Snapshot {
	_, had := s.root.stored(parts...)
	changed := *s
	changed.revision = revision
	switch {
	case value != nil:
		changed.root = s.root.with(parts, value, revision)
		if !had {
			changed.keys++
		}
	case had:
		changed.root = s.root.without(parts)
		changed.keys--
	}
	return &changed
}

// at returns the same contents as of a later revision.
func (s *Snapshot) at(revision int64) *Snapshot {
	if s == nil || s.revision >= revision {
		return s
	}
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
	return s.id == o.id && s.root == o.root
}

// ID returns the context's id.
func (s *Snapshot) ID() string { return s.id }

// Revision returns the revision of etcd at which the context was as the snapshot shows it.
func (s *Snapshot) Revision() int64 { return s.revision }

// Handle returns the handle of the context.
func (s *Snapshot) Handle() Handle { return ContextHandle(s.id) }

// Len returns the number of keys.
func (s *Snapshot) Len() int { return s.keys }

// Exists reports whether the context itself is there. What it holds may outlive it for a moment, or in a botched deletion.
func (s *Snapshot) Exists() bool { return s.root != nil && s.root.has }

// All returns the handles with their raw values, in the order of their keys in etcd.
func (s *Snapshot) All() iter.Seq2[Handle, []byte] {
	return func(yield func(Handle, []byte) bool) {
		s.root.walk(string(s.Handle()), func(key string, n *node) bool { return yield(Handle(key), n.value) })
	}
}

// Meta returns what the context was made for; the zero value when that is not recorded.
func (s *Snapshot) Meta() (CompositeAppMeta, error) {
	var m CompositeAppMeta
	err := s.top().json(&m, partMeta)
	return m, err
}

// Status returns the state of the context that rsync keeps; empty as long as rsync has not begun with it.
func (s *Snapshot) Status() (State, error) {
	text, err := s.top().status(partStatus)
	return State(text), err
}

// StatusContextID returns the id of the context under which bundles and states are kept: that of the first context of a
// deployment intent group that was updated or rolled back since, else the context's own.
func (s *Snapshot) StatusContextID() (string, error) {
	text, err := s.top().text("statusappctxid")
	if text == "" {
		return s.id, err
	}
	return text, err
}

// StopFlag reports whether rsync is to stop.
func (s *Snapshot) StopFlag() (bool, error) {
	var stop bool
	err := s.top().json(&stop, "stopflag")
	return stop, err
}

// AppOrder returns the names in the instruction that orders the apps; nil when there is none.
func (s *Snapshot) AppOrder() ([]string, error) {
	return s.top().order("apporder", partApp)
}

// Apps returns the apps in the order of the instruction, then those that it does not name, in the order of their keys. An
// order that cannot be read counts as none.
func (s *Snapshot) Apps() []App {
	order, err := s.AppOrder()
	if err != nil {
		order = nil
	}
	var apps []App
	for _, l := range s.top().entries(order, partApp) {
		apps = append(apps, App{l, s.id})
	}
	return apps
}

// App returns the app with a name, and whether it is there.
func (s *Snapshot) App(name string) (App, bool) {
	l, ok := s.top().entry(partApp, name)
	return App{l, s.id}, ok && name != partInstruction
}

func (s *Snapshot) top() level { return level{string(s.Handle()), s.root} }

// level is a key in a snapshot, and what is there.
type level struct {
	key  string
	node *node
}

// Handle returns the handle.
func (l level) Handle() Handle { return Handle(l.key) }

// Value returns the raw value of a level below the handle, such as "status", and whether it is there.
func (l level) Value(levels ...string) ([]byte, bool) { return l.node.stored(levels...) }

// Revision returns the revision of etcd at which the value of a level below the handle was last written; 0 when it is
// not there.
func (l level) Revision(levels ...string) int64 {
	if n := l.node.at(levels...); n != nil && n.has {
		return n.revision
	}
	return 0
}

func (l level) name() string { return path.Base(l.key) }

func (l level) below(parts []string) string {
	if len(parts) == 0 {
		return l.key
	}
	return l.key + strings.Join(parts, "/") + "/"
}

func (l level) json(into any, parts ...string) error {
	data, ok := l.node.stored(parts...)
	if !ok {
		return nil
	}
	return decode(l.below(parts), data, into)
}

func (l level) text(parts ...string) (string, error) {
	data, ok := l.node.stored(parts...)
	if !ok {
		return "", nil
	}
	return decodeText(l.below(parts), data)
}

func (l level) status(parts ...string) (string, error) {
	data, _ := l.node.stored(parts...)
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
	parts = append(slices.Clip(parts), partInstruction, partOrder)
	text, err := l.text(parts...)
	if err != nil || text == "" {
		return nil, err
	}
	var value map[string][]string
	if err := decode(l.below(parts), []byte(text), &value); err != nil {
		return nil, err
	}
	return value[field], nil
}

// entry returns what is at a path, if something is stored there itself.
func (l level) entry(parts ...string) (level, bool) {
	n := l.node.at(parts...)
	return level{l.below(parts), n}, n != nil && n.has
}

// entries returns what is one level below a path, those in the order first, then the others.
func (l level) entries(order []string, parts ...string) []level {
	parent := l.node.at(parts...)
	if parent == nil {
		return nil
	}
	key := l.below(parts)
	found := make([]level, 0, len(parent.children))
	taken := make(map[string]bool, len(order))
	add := func(name string) {
		if n := parent.at(name); n != nil && n.has && name != partInstruction && !taken[name] {
			taken[name] = true
			found = append(found, level{key + name + "/", n})
		}
	}
	for _, name := range order {
		add(name)
	}
	for _, c := range parent.children {
		add(c.name)
	}
	return found
}
