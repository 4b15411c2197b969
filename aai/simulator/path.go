package simulator

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Parts of paths. All paths of the API start with basePath.
const (
	basePath         = "/aai"
	listSegment      = "relationship-list"
	edgeSegment      = "relationship"
	relationshipPath = "/" + listSegment + "/" + edgeSegment
)

// place is the location of a node, which need not exist.
type place struct {
	typ       *nodeType
	keys      []string // decoded, in the order of the URI
	parent    *place   // place of the node that contains it, nil for a top-level type
	container string   // path of its container
	uri       string   // canonical path, which identifies a node: "/network/generic-vnfs/generic-vnf/vnf-1"
}

func newPlace(t *nodeType, parent *place, keys ...string) *place {
	p := &place{typ: t, keys: keys, parent: parent, container: containerURI(t, parent)}
	p.uri = p.container + "/" + t.name
	for _, key := range keys {
		p.uri += "/" + escapeSegment(key)
	}
	return p
}

// local returns the end of the URI that A&AI quotes in errors about the resource-version: "/vf-modules/vf-module/m".
func (p *place) local() string {
	if p.parent == nil {
		return p.uri
	}
	return strings.TrimPrefix(p.uri, p.parent.uri)
}

// containerURI returns the path of the container with the nodes of a type below a parent, which is nil at the top.
func containerURI(t *nodeType, parent *place) string {
	if parent == nil {
		return "/" + t.namespace + "/" + t.container
	}
	return parent.uri + "/" + t.container
}

// scope is the kind of a target.
type scope int

const (
	nodeScope scope = iota
	containerScope
	listScope // the relationship-list of a node
	edgeScope // .../relationship-list/relationship
)

// target is the node, container or list that a path names.
type target struct {
	scope scope
	node  *place    // of all scopes but containerScope; of that the parent, nil at the top
	typ   *nodeType // of the node, or of the members of the container
}

// parsePath parses a percent-encoded path below /aai/vN, with or without a leading slash. It returns AAI_3000 for a name that is no
// type in the schema version, and AAI_3001 for a type in the wrong place.
func parsePath(path string, schema int) (target, *apiError) {
	segments := strings.Split(strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/"), "/")
	namespace, rest := segments[0], segments[1:]
	switch {
	case !isNamespace(namespace):
		return target{}, pathError(path, namespace, schema)
	case len(rest) == 0:
		return target{}, newAPIError(errInvalidInput, "%s not a valid path", path)
	}
	var r target
	for len(rest) > 0 {
		if r.node != nil && rest[0] == listSegment {
			return r.relations(path, rest[1:])
		}
		var err *apiError
		if rest, err = r.descend(path, namespace, rest, schema); err != nil {
			return target{}, err
		}
	}
	return r, nil
}

// descend parses one container segment and, if more follow, the node below it. It returns the remaining segments.
func (r *target) descend(path, namespace string, rest []string, schema int) ([]string, *apiError) {
	t := typeContained(rest[0], schema)
	if t == nil || !r.mayHold(t, namespace) {
		return nil, pathError(path, rest[0], schema)
	}
	r.scope, r.typ = containerScope, t
	if len(rest) == 1 {
		return nil, nil
	}
	if rest[1] != t.name {
		return nil, pathError(path, rest[1], schema)
	}
	end := 2 + len(t.keys())
	if len(rest) < end {
		return nil, newAPIError(errBadNesting, "%s ends before the key of %s", path, t.name)
	}
	var keys []string
	for _, segment := range rest[2:end] {
		key, err := url.PathUnescape(segment)
		if err != nil || key == "" {
			return nil, newAPIError(errInvalidInput, "%s not a valid path: key %q of %s", path, segment, t.name)
		}
		keys = append(keys, key)
	}
	r.scope, r.node = nodeScope, newPlace(t, r.node, keys...)
	return rest[end:], nil
}

// mayHold reports whether the next segment may be a container of the type.
func (r *target) mayHold(t *nodeType, namespace string) bool {
	if r.node == nil {
		return t.parent == "" && t.namespace == namespace
	}
	return t.parent == r.node.typ.name
}

func (r target) relations(path string, rest []string) (target, *apiError) {
	switch {
	case len(rest) == 0:
		r.scope = listScope
	case len(rest) == 1 && rest[0] == edgeSegment:
		r.scope = edgeScope
	default:
		return target{}, newAPIError(errInvalidInput, "%s not a valid path", path)
	}
	return r, nil
}

// pathError returns the error for a segment: one for a name that no type has, another for a name in the wrong place.
func pathError(path, segment string, schema int) *apiError {
	if typeNamed(segment, schema) == nil && typeContained(segment, schema) == nil && !isNamespace(segment) {
		return newAPIError(errInvalidInput, "Unrecognized AAI object %s", segment)
	}
	return newAPIError(errBadNesting, "%s not a valid path. %s not valid", path, segment)
}

// trimVersion removes /aai and any version, but no host, from a link or from the uri of a bulk operation, as A&AI does. The result
// has a leading slash.
func trimVersion(link string) string {
	path := strings.TrimPrefix(link, "/")
	if below, ok := strings.CutPrefix(path, basePath[1:]+"/"); ok {
		name, rest, more := strings.Cut(below, "/")
		if _, isVersion := schemaNumber(name); isVersion && more {
			path = rest
		}
	}
	return "/" + strings.TrimPrefix(path, "/")
}

// schemaNumber parses a version such as "v32".
func schemaNumber(name string) (int, bool) {
	n, _ := strconv.Atoi(strings.TrimPrefix(name, "v")) // 0 for what is no number
	return n, n > 0 && "v"+strconv.Itoa(n) == name
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

// canonical reports whether every segment of a path is encoded as by escapeSegment.
func canonical(path string) bool {
	return !slices.ContainsFunc(strings.Split(path, "/"), func(segment string) bool {
		decoded, err := url.PathUnescape(segment)
		return err != nil || escapeSegment(decoded) != segment
	})
}

// unescaped decodes a percent-encoded path for messages. It returns an invalid path unchanged.
func unescaped(path string) string {
	if decoded, err := url.PathUnescape(path); err == nil {
		return decoded
	}
	return path
}

// parameter is one name and value of a query string, decoded.
type parameter struct{ name, value string }

// parseQuery splits a raw query and reports whether its names and values are encoded canonically; + is a space.
func parseQuery(raw string) (parameters []parameter, ok bool) {
	ok = true
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		value = strings.ReplaceAll(value, "+", "%20")
		ok = ok && canonicalSegment(name) && canonicalSegment(value)
		parameters = append(parameters, parameter{unescaped(name), unescaped(value)})
	}
	return parameters, ok
}

func canonicalSegment(segment string) bool {
	return !strings.Contains(segment, "/") && canonical(segment)
}
