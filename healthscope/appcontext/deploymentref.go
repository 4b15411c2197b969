package appcontext

import "strings"

// DeploymentRef is what users act on, and contexts are made for: a deployment intent group, or a cluster with its network
// intents. Make it with GroupRef or ClusterRef. It can be the key of a map.
type DeploymentRef struct {
	// Project, CompositeApp, Version and Group name a deployment intent group.
	Project, CompositeApp, Version, Group string
	// Provider and Cluster name a cluster.
	Provider, Cluster string
}

// NetworkIntents is the name of the app in contexts that hold the network intents of a cluster.
const NetworkIntents = "network-intents"

// The parts of keys under ownPrefix.
const (
	ownGroup   = "group"
	ownCluster = "cluster"
	ownContext = "context"
	ownAction  = "action"
)

// GroupRef is a deployment intent group.
func GroupRef(project, compositeApp, version, group string) DeploymentRef {
	return DeploymentRef{Project: project, CompositeApp: compositeApp, Version: version, Group: group}
}

// ClusterRef is a cluster, for its network intents.
func ClusterRef(provider, cluster string) DeploymentRef {
	return DeploymentRef{Provider: provider, Cluster: cluster}
}

// String returns the names, with slashes between them.
func (s DeploymentRef) String() string { return strings.Join(s.names(), "/") }

func (s DeploymentRef) isCluster() bool { return s.Provider != "" || s.Cluster != "" }

func (s DeploymentRef) names() []string {
	if s.isCluster() {
		return []string{s.Provider, s.Cluster}
	}
	return []string{s.Project, s.CompositeApp, s.Version, s.Group}
}

// check rejects a subject that cannot have keys.
func (s DeploymentRef) check() error {
	arguments := []string{"project", "composite app", "version", "deployment intent group"}
	if s.isCluster() {
		arguments = []string{"cluster provider", "cluster"}
		if rest := s.Project + s.CompositeApp + s.Version + s.Group; rest != "" {
			return &invalidError{"subject", rest, "must not be set together with a cluster"}
		}
	}
	for i, name := range s.names() {
		if err := checkName(arguments[i], name); err != nil {
			return err
		}
	}
	return nil
}

// key returns the key of the subject's history, or that of something below it.
func (s DeploymentRef) key(below ...string) string {
	kind := ownGroup
	if s.isCluster() {
		kind = ownCluster
	}
	return ownPrefix + strings.Join(append(append([]string{kind}, s.names()...), below...), "/") + "/"
}

// backReferenceKey returns the key that says, under the context's id, that the subject's index holds the context.
func (s DeploymentRef) backReferenceKey(id string) string {
	return backReferencePrefix(id) + strings.TrimPrefix(s.key(), ownPrefix)
}

func backReferencePrefix(id string) string { return ownPrefix + ownContext + "/" + id + "/" }

// subjectOf returns the subject that a key under ownPrefix, without that, belongs to, and what follows the subject's key,
// in parts. It is false for other keys.
func subjectOf(rest string) (s DeploymentRef, below []string, ok bool) {
	rest, ok = strings.CutSuffix(rest, "/")
	if !ok { // Store.View does not read such a key either.
		return DeploymentRef{}, nil, false
	}
	switch parts := strings.Split(rest, "/"); {
	case parts[0] == ownGroup && len(parts) >= 5:
		return GroupRef(parts[1], parts[2], parts[3], parts[4]), parts[5:], true
	case parts[0] == ownCluster && len(parts) >= 3:
		return ClusterRef(parts[1], parts[2]), parts[3:], true
	default:
		return DeploymentRef{}, nil, false
	}
}

// subjectOfCluster returns the subject of a context's cluster, if the name of app and cluster make one.
func subjectOfCluster(app, cluster string) (DeploymentRef, bool) {
	provider, name, ok := splitPair(cluster)
	return ClusterRef(provider, name), ok && app == NetworkIntents
}
