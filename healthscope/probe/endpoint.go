package probe

import (
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// maxEndpoint bounds an endpoint, in bytes.
const maxEndpoint = 256

// checkEndpoint returns what is wrong with an endpoint. One without an error is a path that means the same to every program on
// its way: to the API server, which puts it into another URL, and to the target. So nothing in it is escaped, and there is
// nothing to normalise.
func checkEndpoint(endpoint string) error {
	if endpoint == "" {
		return errors.New("is missing: want a path such as /health")
	}
	if problem := problemOf(endpoint); problem != "" {
		return errors.Errorf("%.70q %s", endpoint, problem)
	}
	return nil
}

// problemOf says what is wrong with an endpoint that is there; empty when nothing is.
func problemOf(endpoint string) string {
	switch {
	case len(endpoint) > maxEndpoint:
		return fmt.Sprintf("has %d bytes: want %d at most", len(endpoint), maxEndpoint)
	case endpoint[0] != '/':
		return "is no path: want one that begins with a slash, without scheme, host and port"
	case strings.ContainsFunc(endpoint, isNoPathCharacter):
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

// isNoPathCharacter reports whether a character is none of those that stand in a path unescaped and have no meaning there.
func isNoPathCharacter(c rune) bool {
	isLetter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	isDigit := '0' <= c && c <= '9'
	return !isLetter && !isDigit && !strings.ContainsRune("-._~/", c)
}
