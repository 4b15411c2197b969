package appcontext

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// contextPrefix begins the key of everything that EMCO keeps of contexts.
	contextPrefix = "/context/"
	// ownPrefix begins the key of everything that EMCO does not know of.
	ownPrefix = "/healthscope/"
	// watchEnd is the first key behind ownPrefix: one range from contextPrefix to watchEnd holds both.
	watchEnd = "/healthscope0"

	// maxKeyBytes is the greatest size of a key, in bytes. etcd has no limit of its own.
	maxKeyBytes = 4096
)

// The parts of keys that EMCO gives a meaning.
const (
	partApp         = "app"
	partCluster     = "cluster"
	partResource    = "resource"
	partSubresource = "subresource"
	partInstruction = "instruction"
	partMeta        = "meta"
	partStatus      = "status"
	partGroup       = "!@#metaGrp"
	partOrder       = "order"
	partDependency  = "dependency"
)

// Handle is the place of a value in etcd: a key that begins with /context/<id>/ and ends with a slash. What is below a
// handle has keys that begin with it.
type Handle string

// ContextHandle returns the handle of the context with an id.
func ContextHandle(id string) Handle { return Handle(contextPrefix + id + "/") }

// Level returns the handle of a level below a handle, such as "status"; whether anything is there is not looked up.
func (h Handle) Level(level string) Handle { return h + Handle(level) + "/" }

// split returns the id of a handle's context and what follows it, in parts.
func (h Handle) split() (id string, parts []string, ok bool) {
	return splitKey(string(h))
}

// splitKey returns the id of a context's key and what follows it, in parts. It is false for other keys, and for those
// that no EMCO writes: with an empty part, or without the slash at the end.
func splitKey(key string) (id string, parts []string, ok bool) {
	if !isKey(key) {
		return "", nil, false
	}
	parts = strings.Split(key[len(contextPrefix):len(key)-1], "/")
	return parts[0], parts[1:], true
}

// isKey reports whether a key is one of a context that EMCO would write.
func isKey(key string) bool {
	rest, ok := strings.CutPrefix(key, contextPrefix)
	return ok && len(rest) > 1 && rest[0] != '/' && strings.HasSuffix(rest, "/") && !strings.Contains(rest, "//")
}

// kind is what a handle is the handle of.
type kind string

const (
	kindContext  kind = "a composite app"
	kindApp      kind = "an app"
	kindCluster  kind = "a cluster"
	kindResource kind = "a resource"
	kindLevel    kind = "a level"
)

// kindOfParts returns what the parts of a key after the context's id lead to.
func kindOfParts(parts []string) kind {
	named := func(at int, part string) bool {
		return len(parts) > at && parts[at] == part && (at+1 >= len(parts) || part == partCluster || parts[at+1] != partInstruction)
	}
	switch {
	case len(parts) == 0:
		return kindContext
	case len(parts) == 2 && named(0, partApp):
		return kindApp
	case len(parts) == 4 && named(0, partApp) && named(2, partCluster):
		return kindCluster
	case len(parts) == 6 && named(0, partApp) && named(2, partCluster) && named(4, partResource):
		return kindResource
	default:
		return kindLevel
	}
}

// checkName refuses a name that cannot be a part of a key. what is the complaint.
func checkName(what, name string) error {
	switch {
	case name == "":
		return &invalidError{what, name, "must not be empty"}
	case strings.Contains(name, "/"):
		return &invalidError{what, name, `must not contain "/", which separates the parts of a key`}
	case !utf8.ValidString(name):
		return &invalidError{what, name, "must be UTF-8"}
	}
	return nil
}

// checkNode refuses the name of an app or a resource that cannot be a part of a key, or whose key is taken by instructions.
func checkNode(what, name string) error {
	if name == partInstruction {
		return &invalidError{what, name, "is reserved: the instructions are kept under this key"}
	}
	return checkName(what, name)
}

// checkLevel refuses a level that cannot be a part of a key. A level may have several parts, such as "rsync/state".
func checkLevel(level string) error {
	for part := range strings.SplitSeq(level, "/") {
		if part == "" {
			return &invalidError{"level", level, `must be one or more names with "/" between them`}
		}
	}
	return checkName("level", strings.ReplaceAll(level, "/", "-"))
}

// checkHandle refuses a handle that is not in the context with the id or, when there are wants, none of the wanted.
func checkHandle(id string, h Handle, wants ...kind) error {
	const what = "handle"
	got, parts, ok := h.split()
	if !ok {
		return &invalidError{what, string(h), `must begin with "/context/<id>/" and end with "/"`}
	}
	if got != id {
		return &invalidError{what, string(h), fmt.Sprintf("must be a handle of context %q", id)}
	}
	for _, want := range wants {
		if kindOfParts(parts) == want {
			return nil
		}
	}
	if len(wants) > 0 {
		return &invalidError{what, string(h), "must be the handle of " + string(wants[0])}
	}
	return nil
}
