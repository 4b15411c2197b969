package simulator

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// Fixture is one node to store in the inventory.
type Fixture struct {
	// URI is the path of the node, with or without /aai/vN in front.
	URI string `json:"uri"`
	// Body is the document as in a PUT. A resource-version in it becomes that of the node.
	Body map[string]any `json:"body"`
}

// CloudRegion returns a region. Change or add properties through Body before seeding it.
func CloudRegion(owner, region string) Fixture {
	return Fixture{regionPlace(owner, region).uri, map[string]any{"cloud-owner": owner, "cloud-region-id": region}}
}

// Tenant returns a tenant of a region, with a name made from its id.
func Tenant(owner, region, tenant string) Fixture {
	p := newPlace(typeNamed("tenant", newestSchema), regionPlace(owner, region), tenant)
	return Fixture{p.uri, map[string]any{"tenant-id": tenant, "tenant-name": tenant + "-name"}}
}

// GenericVNF returns a VNF, with a name made from its id.
func GenericVNF(id string) Fixture {
	return Fixture{vnfPlace(id).uri, map[string]any{"vnf-id": id, "vnf-name": id + "-name", "vnf-type": "cnf"}}
}

// VFModule returns a module of a VNF.
func VFModule(vnf, id string) Fixture {
	p := newPlace(typeNamed("vf-module", newestSchema), vnfPlace(vnf), id)
	return Fixture{p.uri, map[string]any{"vf-module-id": id}}
}

func regionPlace(owner, region string) *place {
	return newPlace(typeNamed("cloud-region", newestSchema), nil, owner, region)
}

func vnfPlace(id string) *place { return newPlace(typeNamed("generic-vnf", newestSchema), nil, id) }

// ReadFixtures reads a seed file: a JSON array of fixtures.
func ReadFixtures(r io.Reader) ([]Fixture, error) { return decodeStrictly[[]Fixture](r) }

// Seed adds or replaces nodes, all or none. Parents must come before their children; it adds relationships after all nodes. The
// rules of a PUT apply, except those about resource-version and headers. The journal does not record it.
func (s *Simulator) Seed(fixtures ...Fixture) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = nil // what came before the fixtures cannot be undone any more
	return s.seed(s.inventory, fixtures)
}

// ReplaceState replaces the inventory by these nodes, like the restore of an older backup. If one of them cannot be stored, it
// changes nothing.
func (s *Simulator) ReplaceState(fixtures ...Fixture) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &inventory{nodes: map[string]*node{}, latest: s.inventory.latest} // resource-versions keep increasing
	if err := s.seed(v, fixtures); err != nil {
		return err
	}
	s.inventory, s.last, s.snapshots = v, nil, nil
	return nil
}

// State returns the whole inventory as fixtures that ReplaceState takes.
func (s *Simulator) State() []Fixture {
	s.mu.RLock()
	defer s.mu.RUnlock()
	state := []Fixture{}
	for _, n := range s.inventory.sorted(func(*node) bool { return true }) {
		state = append(state, Fixture{n.place.uri, toMap(s.inventory.document(n, view{schema: newestSchema}))})
	}
	return state
}

// Get returns the document of a node as a GET at depth 0 shows it, and whether the node exists. The URI may have /aai/vN in
// front. Values are string, bool, int64, []string, map[string]any and []map[string]any. It panics when the URI is not the path
// of a node: a test with a misspelt one must not pass because the node is missing.
func (s *Simulator) Get(uri string) (map[string]any, bool) {
	found := s.resolve(uri, nodeScope)
	if len(found) == 0 {
		return nil, false
	}
	return found[0], true
}

// List returns the documents of a container, like ".../k8s-resources", in order of creation; none when it is empty or missing.
// It panics when the URI is not the path of a container.
func (s *Simulator) List(uri string) []map[string]any { return s.resolve(uri, containerScope) }

func (s *Simulator) resolve(uri string, wanted scope) []map[string]any {
	tgt, err := parsePath(trimVersion(uri), s.newest())
	if err != nil {
		panic(fmt.Sprintf("simulator: cannot read URI %q: %v", uri, err))
	}
	if tgt.scope != wanted {
		panic(fmt.Sprintf("simulator: URI %q names no %s", uri, map[scope]string{nodeScope: "node", containerScope: "container"}[wanted]))
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []map[string]any
	for _, n := range s.inventory.lookup(tgt) {
		list = append(list, toMap(s.inventory.document(n, view{schema: s.newest()})))
	}
	return list
}

// seed stores all fixtures in an inventory, or none.
func (s *Simulator) seed(v *inventory, fixtures []Fixture) error {
	t := v.begin(newestSchema, s.now())
	versions, err := t.seedAll(fixtures)
	if err != nil {
		t.rollback()
		return err
	}
	for uri, version := range versions {
		n := *t.nodes[uri]
		n.version = version
		t.replace(uri, &n)
	}
	return nil
}

// seedAll stores fixtures, and returns the resource-versions in their bodies, by URI.
func (t *tx) seedAll(fixtures []Fixture) (map[string]string, error) {
	s, versions := &putOperation{tx: t}, map[string]string{}
	for _, f := range fixtures {
		op, err := f.operation()
		if err != nil {
			return nil, fmt.Errorf("cannot seed %q: %w", f.URI, err)
		}
		if version := op.doc.version; version != "" {
			number, err := strconv.ParseInt(version, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("cannot seed %q: resource-version %q is not a number", f.URI, version)
			}
			versions[op.place.uri] = version
			t.latest = max(t.latest, number)
		}
		op.doc.version = ""
		if old := t.nodes[op.place.uri]; old != nil {
			op.doc.version = old.version
		}
		if err := s.store(op.place, op.doc); err != nil {
			return nil, fmt.Errorf("cannot seed %q: %w", f.URI, err)
		}
	}
	for _, l := range s.links {
		if err := s.setEdges(l.place, l.links); err != nil {
			return nil, fmt.Errorf("cannot seed relationships of %q: %w", l.place.uri, err)
		}
	}
	return versions, nil
}

// operation returns a fixture as the operation of a PUT.
func (f Fixture) operation() (*operation, error) {
	body, err := json.Marshal(f.Body)
	if err != nil {
		return nil, fmt.Errorf("cannot encode body: %w", err)
	}
	raw, refused := decodeObject(body)
	if refused != nil {
		return nil, refused
	}
	op, refused := (&request{schema: newestSchema}).prepare(put, trimVersion(f.URI), nil, raw)
	if refused != nil {
		return nil, refused
	}
	return op, nil
}
