package status

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// DialectEMCO is the value of the parameter dialect that asks for the answers of EMCO 22.12.
const DialectEMCO = "22.12"

// The names of the parameters of EMCO 22.12 that the status design does not have.
const (
	parameterApps      = "apps"
	parameterClusters  = "clusters"
	parameterResources = "resources"
	parameterStatus    = "status"
)

// The values of the parameter status of EMCO 22.12.
const (
	statusDeployed = "deployed"
	statusReady    = "ready"
)

// EMCOQuery holds the parameters of a Query that only the dialect of EMCO 22.12 has.
type EMCOQuery struct {
	// Status is deployed or ready; empty when type determines the status that the document shows.
	Status string
	// List is apps, clusters or resources when the request is only for their names; otherwise empty.
	List string
}

// EMCOParameters returns the sorted names of the parameters that only the dialect of EMCO 22.12 has.
func EMCOParameters() []string {
	return []string{parameterApps, parameterClusters, parameterResources, parameterStatus}
}

// parseEMCOQuery parses the parameters of a request in the dialect of EMCO 22.12. Errors about values begin with EMCO's words.
func parseEMCOQuery(values map[string][]string) (Query, error) {
	known := []string{
		parameterApp, parameterApps, parameterCluster, parameterClusters, parameterDialect, parameterInstance, parameterOutput,
		parameterResource, parameterResources, parameterStatus, parameterType,
	}
	q := Query{Type: TypeRsync, Output: OutputAll, EMCO: &EMCOQuery{}}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(known, name) {
			return Query{}, newParameterError(name, strings.Join(values[name], ","), "is unknown", strings.Join(known, ", "))
		}
		if err := q.setEMCO(name, values[name]); err != nil {
			prefix := "Invalid query " + name
			switch name {
			case parameterApp, parameterCluster:
				prefix = "Invalid " + name + " query"
			case parameterResource:
				prefix = "Invalid resources query"
			}
			return Query{}, fmt.Errorf("%s: %w", prefix, err)
		}
	}
	switch q.EMCO.Status { // It takes precedence over type.
	case statusDeployed:
		q.Type = TypeRsync
	case statusReady:
		q.Type = TypeCluster
	}
	q.setEMCOList(values)
	return q, nil
}

// setEMCO is set for the parameters of EMCO 22.12.
func (q *Query) setEMCO(name string, values []string) (err error) {
	switch name {
	case parameterInstance:
		if err = q.setInstance(values); err == nil && q.ListInstances {
			err = newParameterError(name, "", "cannot be used", "the id of a context")
		}
	case parameterOutput:
		q.Output, err = parseEnum[Output](name, values, string(OutputAll), string(OutputSummary), string(OutputDetail))
	case parameterType:
		q.Type, err = parseEnum[Type](name, values, string(TypeRsync), string(TypeCluster))
	case parameterStatus:
		q.EMCO.Status, err = parseEnum[string](name, values, statusDeployed, statusReady)
	case parameterDialect:
		_, err = parseEnum[string](name, values, DialectEMCO)
	case parameterApps, parameterClusters, parameterResources: // setEMCOList reads them.
	default:
		err = q.set(name, values)
	}
	return err
}

// setEMCOList turns the query into a query for names, if the parameters request one. It resets the parameters that EMCO ignores for it.
func (q *Query) setEMCOList(values map[string][]string) {
	for _, name := range []string{parameterApps, parameterClusters, parameterResources} {
		if _, ok := values[name]; ok && q.EMCO.List == "" {
			q.EMCO.List = name
		}
	}
	if q.EMCO.List == "" {
		return
	}
	q.Output, q.Resources = OutputAll, nil
	if q.EMCO.List != parameterResources {
		q.Type, q.Clusters = TypeRsync, nil
	}
	if q.EMCO.List == parameterApps {
		q.Apps = nil
	}
}

// checkEMCO returns an error for a filter that EMCO 22.12 rejects once it knows the context. It also rejects a query for names about a
// cluster, because EMCO does not list the names of its network intents.
func (in Input) checkEMCO(q Query) error {
	if in.Subject.Cluster != "" {
		if q.EMCO.List != "" {
			return newParameterError(q.EMCO.List, "", "is only for deployment intent groups", "no "+q.EMCO.List)
		}
		return nil
	}
	for _, name := range q.Apps {
		if in.Contents != nil && !slices.ContainsFunc(in.Contents.apps, func(a app) bool { return a.name == name }) {
			return errors.New("Filter app " + name + " not in list of apps for composite app " + in.Subject.CompositeApp) // EMCO's words.
		}
	}
	return nil
}
