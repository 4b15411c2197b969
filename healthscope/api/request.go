package api

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/healthscope/healthscope/healthscope"
)

// maxURLBytes bounds path and query of a request. RFC 9110 section 4.1 asks servers to take at least this much.
const maxURLBytes = 8000

// maxPathName bounds the names in a path; EMCO's have at most 128 bytes.
const maxPathName = 253

// maxEcho bounds what an error repeats of the request.
const maxEcho = 200

// isCleanPath reports whether the path of a request is one that can name a route: absolute, and without empty, "." and ".."
// segments. The router would answer others with a redirect, in HTML.
func isCleanPath(escapedPath string) bool {
	if !strings.HasPrefix(escapedPath, "/") {
		return false
	}
	cleaned := path.Clean(escapedPath)
	return escapedPath == cleaned || cleaned != "/" && escapedPath == cleaned+"/"
}

// isLoopback reports whether the host of a request, with or without a port, is this one: localhost, or a loopback address. A
// page in a browser can make another name lead here, and read what is answered; the browser says which name it was. Without
// one, which HTTP/1.0 allows, it is no browser that asks.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "" || strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return err == nil && address.Unmap().IsLoopback()
}

// parseQuery reads the query of a request, in which each of the known parameters may occur once, or if repeated often.
func parseQuery(raw string, known []string, repeated bool) (url.Values, error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, statusErrorf(http.StatusBadRequest, "cannot read the query %s: %w", quote(raw), err)
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		given := query[name]
		if !slices.Contains(known, name) {
			return nil, statusErrorf(http.StatusBadRequest, "unknown query parameter %s with value %s; %s", quote(name), quote(given[0]), knownParameters(known))
		}
		if len(given) > 1 && !repeated {
			return nil, statusErrorf(http.StatusBadRequest, "query parameter %q is given %d times, with values %s and %s; it may be given once", name, len(given), quote(given[0]), quote(given[1]))
		}
	}
	return query, nil
}

func knownParameters(known []string) string {
	if len(known) == 0 {
		return "this path takes none"
	}
	return fmt.Sprintf("this path takes %q", known)
}

// checkNamespace refuses what cannot be the name of a namespace: a DNS label.
func checkNamespace(namespace string) error {
	return checkName("namespace", namespace, validation.IsDNS1123Label)
}

// checkScopeName refuses what cannot be the name of a HealthScope: a DNS subdomain.
func checkScopeName(name string) error {
	return checkName("name", name, validation.IsDNS1123Subdomain)
}

// checkPathName refuses what cannot be a name in EMCO, or would not be one part of a URL that rights are given on.
func checkPathName(parameter, value string) error {
	return checkName(parameter, value, func(value string) []string {
		switch {
		case value == "." || value == "..":
			return []string{`must not be "." or ".."`}
		case len(value) > maxPathName || !utf8.ValidString(value) || strings.ContainsFunc(value, func(r rune) bool { return r == '/' || unicode.IsControl(r) }):
			return []string{fmt.Sprintf("must be at most %d bytes of UTF-8 without / and control characters", maxPathName)}
		}
		return nil
	})
}

// checkInstance refuses what cannot be the id of an instance: the value of a label.
func checkInstance(id string) error {
	return checkName("id", id, validation.IsValidLabelValue)
}

func checkName(parameter, value string, problems func(string) []string) error {
	if found := problems(value); len(found) > 0 {
		return statusErrorf(http.StatusBadRequest, "parameter %q has the value %s, which cannot be a name: %s", parameter, quote(value), strings.Join(found, "; "))
	}
	return nil
}

// quote quotes what a caller sent, for an error. A long value is cut.
func quote(value string) string {
	if len(value) <= maxEcho {
		return strconv.Quote(value)
	}
	return strconv.Quote(shorten(value)) + fmt.Sprintf("... (%d bytes)", len(value))
}

// shorten cuts what a caller sent to what may be repeated of it.
func shorten(text string) string { return healthscope.Cut(text, maxEcho) }
