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

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/status"
)

// maxURLBytes is the maximum length of the path and query of a request. RFC 9110 section 4.1 recommends that servers accept at least this.
const maxURLBytes = 8000

// maxPathName is the maximum length of a name in a path, in bytes; names in EMCO have at most 128.
const maxPathName = 253

// maxEcho is the maximum length of text from the request in an error, in bytes.
const maxEcho = 200

// requestInfo is a request to a route. It is parsed once.
type requestInfo struct {
	*http.Request

	route *route
	// caller is who sent it; without a name when there is no Guard.
	caller Caller
	// admitted is true while it counts as under way.
	admitted bool
	query    url.Values
	// access is what the caller needs.
	access Access
	// selection are the scopes of the request, and page a part of the list of them.
	selection selection
	page      page
	// contentType is the media type of the response: typeStream for a stream, and empty for a response without content.
	contentType string
}

// parse parses and validates the request. It returns an error for one that is invalid for all callers.
func (q *requestInfo) parse() (err error) {
	if q.query, err = parseQuery(q.URL.RawQuery, parameterNames(q.route.Parameters), q.route.repeated); err != nil {
		return err
	}
	if q.route.read != nil {
		if err := q.route.read(q); err != nil {
			return err
		}
	}
	offers, otherwise := q.route.MediaTypes, ""
	if q.route.streams && q.query.Has(parameterWatch) {
		switch value := q.query.Get(parameterWatch); value {
		case "true":
			offers, otherwise = []string{typeStream}, " with watch=true, or without it as "+strings.Join(q.route.MediaTypes, " or ")
		case "false":
		default:
			return statusErrorf(http.StatusBadRequest, "query parameter %q has the value %s; it must be true or false", parameterWatch, quote(value))
		}
	}
	if len(offers) == 0 {
		return nil
	}
	accept := strings.Join(q.Header.Values("Accept"), ",")
	var ok bool
	if q.contentType, ok = negotiate(accept, offers); !ok {
		return statusErrorf(http.StatusNotAcceptable, "the header Accept is %s; this path can be answered as %s%s", quote(accept), strings.Join(offers, " or "), otherwise)
	}
	switch { // The parameter and the media type have the same meaning.
	case q.query.Has(parameterDialect):
		q.contentType = typeEMCO
	case q.contentType == typeEMCO:
		q.query.Set(parameterDialect, status.DialectEMCO)
	}
	return nil
}

// isCleanPath reports whether a path is absolute and has no empty, "." and ".." segments. The router would respond to other paths with a
// redirect in HTML.
func isCleanPath(escapedPath string) bool {
	if !strings.HasPrefix(escapedPath, "/") {
		return false
	}
	cleaned := path.Clean(escapedPath)
	return escapedPath == cleaned || cleaned != "/" && escapedPath == cleaned+"/"
}

// isLoopback reports whether the host of a request, with or without a port, is localhost or a loopback address. A web page in a browser can make
// another name resolve to this server and read the responses (DNS rebinding); the browser sends that name. A request without a host, which
// HTTP/1.0 allows, does not come from a browser.
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

// parseQuery parses the query of a request. Each of the known parameters may occur once, or more than once when repeated is true.
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

// checkPathName returns an error when a value is not a valid name in EMCO, or not one segment of a non-resource URL in RBAC.
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

// checkName returns an error when a value has problems as a name.
func checkName(parameter, value string, problems func(string) []string) error {
	if found := problems(value); len(found) > 0 {
		return statusErrorf(http.StatusBadRequest, "parameter %q has the value %s, which cannot be a name: %s", parameter, quote(value), strings.Join(found, "; "))
	}
	return nil
}

// quote returns a value from the request quoted for an error, and cuts it when it is long.
func quote(value string) string {
	if len(value) <= maxEcho {
		return strconv.Quote(value)
	}
	return strconv.Quote(shorten(value)) + fmt.Sprintf("... (%d bytes)", len(value))
}

// shorten cuts a text from the request to maxEcho bytes.
func shorten(text string) string { return healthscope.Cut(text, maxEcho) }
