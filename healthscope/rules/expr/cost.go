package expr

import (
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types/ref"
)

// CostLimit is the maximum cost of one evaluation of an expression. The unit is that of cel-go, about one operation or ten characters; the API
// server allows ten times as much for a validation rule (k8s.io/apiserver/pkg/apis/cel).
const CostLimit = 100_000

// costEstimator estimates the cost of calls that cel-go counts as one operation or underestimates: comparisons that read whole objects, and
// the size of a string. It leaves all other calls to cel-go.
type costEstimator struct{}

// CallCost implements interpreter.ActualCostEstimator.
func (costEstimator) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	switch function {
	case operators.Equals, operators.NotEquals, operators.In, overloads.Size:
	default:
		return nil
	}
	var cost uint64
	for _, v := range args {
		cost += valueCost(v.Value())
	}
	return &cost
}

// valueCost returns the cost of reading a value and everything in it.
func valueCost(value any) uint64 {
	sum := uint64(1)
	switch v := value.(type) {
	case string:
		sum += uint64(len(v) / 10)
	case []any:
		for _, item := range v {
			sum += valueCost(item)
		}
	case map[string]any:
		for _, field := range v {
			sum += valueCost(field)
		}
	case []ref.Val:
		for _, item := range v {
			sum += valueCost(item.Value())
		}
	}
	return sum
}
