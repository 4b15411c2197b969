package api

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
)

// etagOf returns the entity tag of a body (RFC 9110 section 8.8.3): two bodies with the same tag are the same.
func etagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"`
}

// etagMatches reports whether a header If-None-Match names a tag. It uses the weak comparison, as RFC 9110 section 13.1.2 requires.
func etagMatches(header, tag string) bool {
	return slices.ContainsFunc(strings.Split(header, ","), func(element string) bool {
		element = strings.TrimSpace(element)
		return element == "*" || strings.TrimPrefix(element, "W/") == tag
	})
}
