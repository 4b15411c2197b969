package observed

import (
	"fmt"

	"github.com/prometheus/prometheus/promql/parser"
)

// Selectors returns the vector selectors in a PromQL query, in their order and without offsets. The query may contain variables
// of a dashboard.
func Selectors(query string) ([]*parser.VectorSelector, error) {
	expression, err := parser.ParseExpr(Fill(query, "1m"))
	if err != nil {
		return nil, fmt.Errorf("cannot read query %q: %w", query, err)
	}
	var found []*parser.VectorSelector
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok {
			found = append(found, &parser.VectorSelector{Name: s.Name, LabelMatchers: s.LabelMatchers})
		}
		return nil
	})
	return found, nil
}
