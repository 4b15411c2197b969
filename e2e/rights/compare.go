package rights

import (
	"fmt"
	"slices"
)

// Compare returns a sentence for each grant that is unused, that applies to all namespaces but is used in one only, or that has
// a wildcard: of a wildcard, it cannot be shown that it grants no more than is used. The sentences are sorted. Requests that are
// used but not granted are in Log.Refused.
func Compare(uses []Use, grants []Grant) []string {
	var differences []string
	for _, g := range grants {
		var places []string
		for _, u := range uses {
			if g.covers(u) {
				places = append(places, u.Namespace)
			}
		}
		slices.Sort(places)
		places = slices.Compact(places)
		switch {
		case g.wild():
			differences = append(differences, fmt.Sprintf("granted with a wildcard: %s", g))
		case len(places) == 0:
			differences = append(differences, fmt.Sprintf("granted and not used: %s", g))
		case g.URL == "" && g.Namespace == "" && len(places) == 1 && places[0] != "":
			differences = append(differences, fmt.Sprintf("granted everywhere and used in namespace %s only: %s", places[0], g))
		}
	}
	slices.Sort(differences)
	return slices.Compact(differences)
}
