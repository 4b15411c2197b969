package probe

import (
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// maxEndpoint bounds an endpoint, in bytes.
const maxEndpoint = 256

// checkEndpoint returns an error for an endpoint that cannot be used. A valid endpoint is a path that means the same to the
// API server, which puts it into another URL, and to the target. It therefore has nothing that is escaped or normalised.
func checkEndpoint(endpoint string) error {
	if endpoint == "" {
		return errors.New("is missing: want a path such as /health")
	}
	if problem := endpointProblem(endpoint); problem != "" {
		return errors.Errorf("%.70q %s", endpoint, problem)
	}
	return nil
}

// endpointProblem describes what is wrong with a non-empty endpoint; empty when nothing is.
func endpointProblem(endpoint string) string {
	switch {
	case len(endpoint) > maxEndpoint:
		return fmt.Sprintf("has %d bytes: want %d at most", len(endpoint), maxEndpoint)
	case endpoint[0] != '/':
		return "is no path: want one that begins with a slash, without scheme, host and port"
	case strings.ContainsFunc(endpoint, isForbiddenInPath):
		return "has characters other than letters, digits and -._~/: want a path without query, fragment and escapes"
	}
	segments := strings.Split(endpoint[1:], "/")
	for i, segment := range segments {
		switch last := i == len(segments)-1; {
		case segment == "" && !last:
			return "has two slashes in a row"
		case segment == "." || segment == "..":
			return fmt.Sprintf("has a segment %q", segment)
		}
	}
	return ""
}

// isForbiddenInPath reports whether a character is not allowed in an endpoint: all but letters, digits and -._~/ are forbidden.
func isForbiddenInPath(c rune) bool {
	isLetter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	isDigit := '0' <= c && c <= '9'
	return !isLetter && !isDigit && !strings.ContainsRune("-._~/", c)
}
