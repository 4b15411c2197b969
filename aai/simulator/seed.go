package simulator

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Fixture is one node to be in the inventory.
type Fixture struct {
	// URI is the path of the node, with or without /aai/vN in front.
	URI string `json:"uri"`
	// Body is the document as in a PUT. A resource-version in it becomes that of the node.
	Body map[string]any `json:"body"`
}

// CloudRegion returns a region; change or add properties through Body before seeding it.
func CloudRegion(owner, region string) Fixture {
	return fixture("cloud-region", map[string]any{"cloud-owner": owner, "cloud-region-id": region}, nil, owner, region)
}

// Tenant returns a tenant of a region, with a name made from its id.
func Tenant(owner, region, tenant string) Fixture {
	parent := &place{typ: typeNamed("cloud-region", newestSchema), keys: []string{owner, region}}
	return fixture("tenant", map[string]any{"tenant-id": tenant, "tenant-name": tenant + "-name"}, parent, tenant)
}

// GenericVNF returns a VNF, with a name made from its id.
func GenericVNF(id string) Fixture {
	return fixture("generic-vnf", map[string]any{"vnf-id": id, "vnf-name": id + "-name", "vnf-type": "cnf"}, nil, id)
}

// VFModule returns a module of a VNF.
func VFModule(vnf, id string) Fixture {
	parent := &place{typ: typeNamed("generic-vnf", newestSchema), keys: []string{vnf}}
	return fixture("vf-module", map[string]any{"vf-module-id": id}, parent, id)
}

func fixture(name string, body map[string]any, parent *place, keys ...string) Fixture {
	p := &place{typ: typeNamed(name, newestSchema), keys: keys, parent: parent}
	return Fixture{URI: p.uri(), Body: body}
}

// Seed adds or replaces nodes, all or none: parents before children, relationships when all nodes are there. The rules
// of a PUT hold except those about resource-version and headers. Nothing of it appears in the journal or as an event.
func (s *Simulator) Seed(fixtures ...Fixture) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = nil // what came before the fixtures cannot be undone any more
	return s.seed(s.graph, fixtures)
}

// ReplaceState makes the inventory exactly these nodes, or leaves it as it is when one of them cannot be stored.
func (s *Simulator) ReplaceState(fixtures ...Fixture) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := newGraph(s.base)
	g.latest = s.graph.latest // resource-versions go on increasing
	if err := s.seed(g, fixtures); err != nil {
		return err
	}
	s.graph, s.last, s.past = g, nil, nil
	return nil
}

// State returns the whole inventory as fixtures that ReplaceState takes back.
func (s *Simulator) State() []Fixture {
	s.mu.RLock()
	defer s.mu.RUnlock()
	nodes := s.graph.all()
	state := make([]Fixture, len(nodes))
	for i, n := range nodes {
		state[i] = Fixture{URI: n.place.uri(), Body: plain(s.graph.document(n, view{base: s.base, schema: newestSchema}))}
	}
	return state
}

// Get returns the document of a node as a GET at depth 0 shows it, and whether the node exists. The URI may have
// /aai/vN in front. Values are string, bool, int64, []string, map[string]any and []map[string]any. It panics when the
// URI is not the path of a node: a test that mistypes it must not pass for want of the node.
func (s *Simulator) Get(uri string) (map[string]any, bool) {
	found := s.resolve(uri, nodeScope)
	if len(found) == 0 {
		return nil, false
	}
	return found[0], true
}

// List returns the documents of a container, like ".../k8s-resources", in order of creation; none when it is empty or
// missing. It panics when the URI is not the path of a container.
func (s *Simulator) List(uri string) []map[string]any { return s.resolve(uri, containerScope) }

func (s *Simulator) resolve(uri string, wanted scope) []map[string]any {
	target, err := parsePath(trimVersion(s.base, uri), s.defaultVersion)
	if err != nil {
		panic(fmt.Sprintf("simulator: cannot read URI %q: %v", uri, err))
	}
	if target.scope != wanted {
		panic(fmt.Sprintf("simulator: URI %q names no %s", uri, map[scope]string{nodeScope: "node", containerScope: "container"}[wanted]))
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	nodes := s.graph.lookup(target)
	list := make([]map[string]any, len(nodes))
	for i, n := range nodes {
		list[i] = plain(s.graph.document(n, view{base: s.base, schema: s.defaultVersion}))
	}
	return list
}

// plain turns an ordered document into maps.
func plain(o object) map[string]any {
	m := map[string]any{}
	for _, f := range o {
		switch value := f.value.(type) {
		case object:
			m[f.name] = plain(value)
		case []object:
			list := make([]map[string]any, len(value))
			for i, item := range value {
				list[i] = plain(item)
			}
			m[f.name] = list
		default:
			m[f.name] = value
		}
	}
	return m
}

// seed stores fixtures in a graph, or none of them.
func (s *Simulator) seed(g *graph, fixtures []Fixture) error {
	now, still := s.clock.now()
	t := g.begin(newestSchema, now, still)
	p := &planting{storing: storing{tx: t}, versions: map[string]string{}}
	for _, f := range fixtures {
		if err := p.plant(f); err != nil {
			t.rollback()
			return fmt.Errorf("cannot seed %q: %w", f.URI, err)
		}
	}
	for _, link := range p.links {
		if err := link(); err != nil {
			t.rollback()
			return fmt.Errorf("cannot seed relationships: %w", err)
		}
	}
	for uri, version := range p.versions {
		t.stamp(uri, version)
	}
	return nil
}

// planting stores fixtures, with the resource-versions they ask for.
type planting struct {
	storing
	versions map[string]string // by canonical URI
}

func (p *planting) plant(f Fixture) error {
	doc, target, err := f.read(p.base)
	if err != nil {
		return err
	}
	uri := target.uri()
	if doc.version != "" {
		number, err := strconv.ParseInt(doc.version, 10, 64)
		if err != nil {
			return fmt.Errorf("resource-version %q is not a number", doc.version)
		}
		p.versions[uri] = doc.version
		p.latest = max(p.latest, number)
	}
	doc.version = ""
	if old := p.nodes[uri]; old != nil {
		doc.version = old.version
	}
	if _, err := p.store(target, doc); err != nil {
		return err
	}
	return nil
}

// read turns a fixture into what a PUT would be.
func (f Fixture) read(base string) (*document, *place, error) {
	body, err := json.Marshal(f.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot encode body: %w", err)
	}
	raw, refusal := decodeObject(body)
	if refusal != nil {
		return nil, nil, refusal
	}
	op, refusal := prepare(put, trimVersion(base, f.URI), newestSchema, raw, ignore)
	if refusal != nil {
		return nil, nil, refusal
	}
	return op.doc, op.target.node, nil
}
