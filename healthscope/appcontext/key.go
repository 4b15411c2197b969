package appcontext

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// contextPrefix is the prefix of all keys in which EMCO keeps contexts.
	contextPrefix = "/context/"
	// ownPrefix is the prefix of all keys that EMCO does not know.
	ownPrefix = "/healthscope/"
	// watchEnd is the first key after those with ownPrefix: the range from contextPrefix to watchEnd holds both prefixes.
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

// Level returns the handle of a level below a handle, such as "status". It does not look up whether anything is there.
func (h Handle) Level(level string) Handle { return h + Handle(level) + "/" }

// split returns the id of the handle's context, and the parts that follow it.
func (h Handle) split() (id string, parts []string, ok bool) {
	return splitKey(string(h))
}

// splitKey returns the id in a context's key, and the parts that follow it. ok is false for other keys, and for keys that
// EMCO never writes: those with an empty part, or without a slash at the end.
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
	return ok && strings.HasSuffix(rest, "/") && !strings.HasPrefix(rest, "/") && !strings.Contains(rest, "//")
}

// kind is what a handle leads to.
type kind string

const (
	kindContext  kind = "a composite app"
	kindApp      kind = "an app"
	kindCluster  kind = "a cluster"
	kindResource kind = "a resource"
	kindLevel    kind = "a level"
)

// kindOfParts returns the kind of a key from its parts after the context's id.
func kindOfParts(parts []string) kind {
	named := func(at int, part string) bool {
		return parts[at] == part && (part == partCluster || parts[at+1] != partInstruction)
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

// checkName rejects a name that cannot be a part of a key. argument names it in the error.
func checkName(argument, name string) error {
	switch {
	case name == "":
		return &invalidError{argument, name, "must not be empty"}
	case strings.Contains(name, "/"):
		return &invalidError{argument, name, `must not contain "/", which separates the parts of a key`}
	case !utf8.ValidString(name):
		return &invalidError{argument, name, "must be UTF-8"}
	}
	return nil
}

// checkNotEmpty rejects the empty string.
func checkNotEmpty(argument string, value any) error {
	if value == "" {
		return &invalidError{argument, "", "must not be empty"}
	}
	return nil
}

// checkNode rejects the name of an app or a resource that cannot be a part of a key, or that is reserved for instructions.
func checkNode(argument, name string) error {
	if name == partInstruction {
		return &invalidError{argument, name, "is reserved: the instructions are kept under this key"}
	}
	return checkName(argument, name)
}

// checkLevel rejects a level that cannot be a part of a key. A level may have several parts, such as "rsync/state".
func checkLevel(level string) error {
	for part := range strings.SplitSeq(level, "/") {
		if part == "" {
			return &invalidError{"level", level, `must be one or more names with "/" between them`}
		}
	}
	return checkName("level", strings.ReplaceAll(level, "/", "-"))
}

// checkHandle rejects a handle that is not in the context with the id or, if wants is not empty, is of none of these kinds.
func checkHandle(id string, h Handle, wants ...kind) error {
	const argument = "handle"
	got, parts, ok := h.split()
	if !ok {
		return &invalidError{argument, string(h), `must begin with "/context/<id>/" and end with "/"`}
	}
	if got != id {
		return &invalidError{argument, string(h), fmt.Sprintf("must be a handle of context %q", id)}
	}
	if len(wants) > 0 && !slices.Contains(wants, kindOfParts(parts)) {
		return &invalidError{argument, string(h), "must be the handle of " + string(wants[0])}
	}
	return nil
}
