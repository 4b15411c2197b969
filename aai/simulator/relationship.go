package simulator

import "slices"

// relationship is one entry of a relationship-list, or the body of the relationship sub-resource, as sent.
type relationship struct {
	relatedTo string            // type of the other end
	label     string            // edge label, empty for the only one there is
	link      string            // related-link: path of the other end
	data      map[string]string // relationship-data: "generic-vnf.vnf-id" -> "vnf-1", used when there is no link
}

// relationshipFields are the fields of a relationship; the last two are written by the server and ignored when read.
var relationshipFields = []string{
	"related-to", "relationship-label", "related-link", "relationship-data", "related-to-property", "relationship-properties",
}

// relationshipList reads a relationship-list. As an array instead of an object it counts as present and empty, which
// removes all edges.
func (d reader) relationshipList(doc *document, t *nodeType, p *property, value any) *apiError {
	doc.linked = true
	for _, raw := range d.members(t, p, value, relationshipSegment) {
		r, err := d.relationship(raw)
		if err != nil {
			return err
		}
		doc.links = append(doc.links, r)
	}
	return nil
}

// relationship reads one relationship, as leniently as a node.
func (d reader) relationship(raw map[string]any) (relationship, *apiError) {
	for _, name := range sortedKeys(raw) {
		if !slices.Contains(relationshipFields, name) {
			d.report(UnknownProperty, "relationship has no property %q", name)
		}
	}
	for _, name := range relationshipFields[:3] {
		switch raw[name].(type) {
		case nil, string:
		case []any:
			return relationship{}, &apiError{code: codeInternal, crash: true}
		default:
			d.report(WrongType, "relationship.%s got %s", name, jsonType(raw[name]))
		}
	}
	r := relationship{
		relatedTo: scalarText(raw["related-to"]),
		label:     scalarText(raw["relationship-label"]),
		link:      scalarText(raw["related-link"]),
		data:      map[string]string{},
	}
	for _, pair := range objectsOf(raw["relationship-data"]) {
		r.data[scalarText(pair["relationship-key"])] = scalarText(pair["relationship-value"])
	}
	return r, nil
}

// target returns where the relationship points: by its link, else by type and keys.
func (r relationship) target(base string, schema int) (*place, *apiError) {
	if r.link == "" {
		return r.targetByKeys(r.relatedTo, schema)
	}
	found, err := parsePath(trimVersion(base, r.link), schema)
	if err != nil || found.scope != nodeScope {
		return nil, fail(codeInvalidInput, "related-link %q is not the path of a node", r.link)
	}
	return found.node, nil
}

// targetByKeys collects the keys of the whole path, outermost type first.
func (r relationship) targetByKeys(name string, schema int) (*place, *apiError) {
	t := typeNamed(name, schema)
	if t == nil {
		return nil, fail(codeInvalidInput, "relationship names no target: related-to %q", r.relatedTo)
	}
	p := &place{typ: t}
	if t.parent != "" {
		parent, err := r.targetByKeys(t.parent, schema)
		if err != nil {
			return nil, err
		}
		p.parent = parent
	}
	for _, key := range t.keys() {
		value := r.data[t.name+"."+key]
		if value == "" {
			return nil, fail(codeInvalidInput, "relationship-data lacks %s.%s", t.name, key)
		}
		p.keys = append(p.keys, value)
	}
	return p, nil
}
