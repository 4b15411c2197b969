package rights

import (
	"fmt"
	"slices"
)

// Compare says in words, in a fixed order, which grants are not used, grant everywhere what is used in one namespace only, or have a wildcard,
// for which it cannot be shown that it is not too much. What is used and not granted is in Log.Refused.
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
