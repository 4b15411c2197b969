package api

import (
	"strings"

	"github.com/munnerz/goautoneg"
)

// Media types of routes. EMCO 22.12 responds with typeEMCO. Errors are typeProblem, or typeText in EMCO's dialect.
const (
	typeJSON    = "application/json"
	typeEMCO    = "application/vnd.emco.v22+json"
	typeText    = "text/plain"
	typeStream  = "text/event-stream"
	typeProblem = "application/problem+json"
)

// negotiate returns the offer with the highest weight in an Accept header (RFC 9110 section 12.5.1); of equal weights, the first. Without the
// header all offers are accepted. It returns false when the caller accepts no offer. goautoneg parses the header; its own choice accepts
// weights of 0 and does not prefer the more specific range.
func negotiate(accept string, offers []string) (string, bool) {
	if strings.Trim(accept, ", ") == "" {
		return offers[0], true
	}
	ranges := goautoneg.ParseAccept(strings.ToLower(accept))
	best, bestQuality := "", 0.0
	for _, offer := range offers {
		if q := quality(ranges, offer); q > bestQuality {
			best, bestQuality = offer, q
		}
	}
	return best, bestQuality > 0
}

// quality returns the weight of the most specific range that matches an offer; 0 when none does. A range with a parameter matches nothing,
// except for the charset that responses have.
func quality(ranges []goautoneg.Accept, offer string) float64 {
	major, minor, _ := strings.Cut(offer, "/")
	specificity, q := -1, 0.0
	for _, r := range ranges {
		s := len(r.Params)
		if s > 1 || s == 1 && strings.Trim(r.Params["charset"], `"`) != "utf-8" {
			continue
		}
		switch {
		case r.Type == major && r.SubType == minor:
			s += 4
		case r.Type == major && r.SubType == "*":
			s += 2
		case r.Type != "*" || r.SubType != "*":
			continue
		}
		if s > specificity {
			specificity, q = s, r.Q
		} else if s == specificity {
			q = max(q, r.Q)
		}
	}
	return q
}
