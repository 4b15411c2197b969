package rights

import (
	"fmt"
	"slices"
)

// Compare says in words, in a fixed order, how uses differ from grants:
//
//   - what is used and not granted;
//   - which of the proven grants, a part of them, are not used, grant
//     everywhere what is used in one namespace only, or have a wildcard, of
//     which nobody can tell that it is not too much.
//
// The result is empty when each use has its grant and each proven grant its use.
func Compare(uses []Use, granted, proven []Grant) []string {
	var differences []string
	for _, u := range uses {
		if !slices.ContainsFunc(granted, func(g Grant) bool { return g.covers(u) }) {
			differences = append(differences, fmt.Sprintf("used and not granted: %s", u))
		}
	}
	for _, g := range proven {
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
