package simulator

import (
	"fmt"
	"net/url"
	"strings"
)

// place is where a node is, or would be: its type, its key values, and the place of the node that contains it.
type place struct {
	typ    *nodeType
	keys   []string // decoded, in URI order
	parent *place   // nil for a top-level type
}

// uri returns the canonical path of the place, which identifies a node: "/network/generic-vnfs/generic-vnf/vnf-1".
func (p *place) uri() string {
	segments := make([]string, 0, 2+len(p.keys))
	segments = append(segments, containerURI(p.typ, p.parent), p.typ.name)
	for _, key := range p.keys {
		segments = append(segments, escapeSegment(key))
	}
	return strings.Join(segments, "/")
}

// local returns the end of the path that A&AI quotes in resource-version errors: "/vf-modules/vf-module/m".
func (p *place) local() string {
	if p.parent == nil {
		return p.uri()
	}
	return strings.TrimPrefix(p.uri(), p.parent.uri())
}

// containerURI returns the path of the container that holds nodes of a type below a parent, nil at the top.
func containerURI(t *nodeType, parent *place) string {
	if parent == nil {
		return "/" + t.namespace + "/" + t.container
	}
	return parent.uri() + "/" + t.container
}

// scope says what a path names.
type scope int

const (
	nodeScope scope = iota
	containerScope
	listScope         // the relationship-list of a node
	relationshipScope // .../relationship-list/relationship
)

// resource is a parsed path.
type resource struct {
	scope  scope
	node   *place    // the node; nil for a container
	member *nodeType // the type named last: the node's, or that of a container's members
	parent *place    // of a container: the node it belongs to, nil at the top
}

// uri returns the canonical path, without the relationship part.
func (r resource) uri() string {
	if r.scope == containerScope {
		return containerURI(r.member, r.parent)
	}
	return r.node.uri()
}

const (
	listSegment         = "relationship-list"
	relationshipSegment = "relationship"
)

// parsePath reads a percent-encoded path below /aai/vN, with or without the slash in front, against the schema as
// version v knows it. Errors: AAI_3000 for a name that is no type, AAI_3001 for a type in the wrong place.
func parsePath(path string, v int) (resource, *apiError) {
	segments := strings.Split(strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/"), "/")
	if !isNamespace(segments[0]) {
		return resource{}, misplaced(path, segments[0], v)
	}
	r := resource{scope: containerScope}
	namespace, rest := segments[0], segments[1:]
	if len(rest) == 0 {
		return resource{}, fail(codeInvalidInput, "%s not a valid path", path)
	}
	for len(rest) > 0 {
		if r.node != nil && rest[0] == listSegment {
			return relationScope(r, path, rest[1:])
		}
		var err *apiError
		if rest, err = r.descend(path, namespace, rest, v); err != nil {
			return resource{}, err
		}
	}
	return r, nil
}

// descend reads one container segment and, when more follows, the node below it.
func (r *resource) descend(path, namespace string, rest []string, v int) ([]string, *apiError) {
	t := typeContained(rest[0], v)
	if t == nil || !r.mayHold(t, namespace) {
		return nil, misplaced(path, rest[0], v)
	}
	r.scope, r.member, r.parent, r.node = containerScope, t, r.node, nil
	if len(rest) == 1 {
		return nil, nil
	}
	if rest[1] != t.name {
		return nil, misplaced(path, rest[1], v)
	}
	names := t.keys()
	if len(rest) < 2+len(names) {
		return nil, fail(codeBadNesting, "%s ends before the key of %s", path, t.name)
	}
	node := &place{typ: t, parent: r.parent}
	for _, segment := range rest[2 : 2+len(names)] {
		key, err := url.PathUnescape(segment)
		if err != nil || key == "" {
			return nil, fail(codeInvalidInput, "%s not a valid path: key %q of %s", path, segment, t.name)
		}
		node.keys = append(node.keys, key)
	}
	r.scope, r.node = nodeScope, node
	return rest[2+len(names):], nil
}

// mayHold reports whether a container of t may come next.
func (r *resource) mayHold(t *nodeType, namespace string) bool {
	if r.node == nil {
		return t.parent == "" && t.namespace == namespace
	}
	return t.parent == r.node.typ.name
}

func relationScope(r resource, path string, rest []string) (resource, *apiError) {
	switch {
	case len(rest) == 0:
		r.scope = listScope
	case len(rest) == 1 && rest[0] == relationshipSegment:
		r.scope = relationshipScope
	default:
		return resource{}, fail(codeInvalidInput, "%s not a valid path", path)
	}
	return r, nil
}

// misplaced tells a name that no type has from one in the wrong place.
func misplaced(path, segment string, v int) *apiError {
	if typeNamed(segment, v) == nil && typeContained(segment, v) == nil && !isNamespace(segment) {
		return fail(codeInvalidInput, "Unrecognized AAI object %s", segment)
	}
	return fail(codeBadNesting, "%s not a valid path. %s not valid", path, segment)
}

// trimVersion takes off a link, and off the uri of a bulk operation, what A&AI strips: the base path and any version,
// never a host. The rest has a slash in front.
func trimVersion(base, link string) string {
	path := strings.TrimPrefix(link, "/")
	if below, ok := strings.CutPrefix(path, strings.TrimPrefix(base, "/")+"/"); ok {
		name, rest, more := strings.Cut(below, "/")
		if _, version := schemaNumber(name); version && more {
			path = rest
		}
	}
	return "/" + strings.TrimPrefix(path, "/")
}

// escapeSegment percent-encodes as A&AI requires: everything but letters, digits and -._~ as upper-case hex.
func escapeSegment(segment string) string {
	var b strings.Builder
	for i := range len(segment) {
		switch c := segment[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// canonicalSegment reports whether encoding what a segment means gives the segment again.
func canonicalSegment(segment string) bool {
	decoded, err := url.PathUnescape(segment)
	return err == nil && escapeSegment(decoded) == segment
}

// canonicalPath reports whether all segments are canonical.
func canonicalPath(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if !canonicalSegment(segment) {
			return false
		}
	}
	return true
}

// parameter is one name and value of a query string, decoded.
type parameter struct{ name, value string }

// parseQuery splits a raw query and reports whether its names and values are canonically encoded; + is a space.
func parseQuery(raw string) (parameters []parameter, canonical bool) {
	canonical = true
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		value = strings.ReplaceAll(value, "+", "%20")
		canonical = canonical && canonicalSegment(name) && canonicalSegment(value)
		parameters = append(parameters, parameter{readable(name), readable(value)})
	}
	return parameters, canonical
}
