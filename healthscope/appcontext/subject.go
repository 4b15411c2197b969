package appcontext

import "strings"

// Subject is what users act on, and contexts are made for: a deployment intent group, or a cluster with its network
// intents. Make it with GroupSubject or ClusterSubject. It can be the key of a map.
type Subject struct {
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

// GroupSubject is a deployment intent group.
func GroupSubject(project, compositeApp, version, group string) Subject {
	return Subject{Project: project, CompositeApp: compositeApp, Version: version, Group: group}
}

// ClusterSubject is a cluster, for its network intents.
func ClusterSubject(provider, cluster string) Subject {
	return Subject{Provider: provider, Cluster: cluster}
}

// String returns the names, with slashes between them.
func (s Subject) String() string { return strings.Join(s.names(), "/") }

func (s Subject) isCluster() bool { return s.Provider != "" || s.Cluster != "" }

func (s Subject) names() []string {
	if s.isCluster() {
		return []string{s.Provider, s.Cluster}
	}
	return []string{s.Project, s.CompositeApp, s.Version, s.Group}
}

// check rejects a subject that cannot have keys.
func (s Subject) check() error {
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
func (s Subject) key(below ...string) string {
	kind := ownGroup
	if s.isCluster() {
		kind = ownCluster
	}
	return ownPrefix + strings.Join(append(append([]string{kind}, s.names()...), below...), "/") + "/"
}

// backReferenceKey returns the key that says, under the context's id, that the subject's index holds the context.
func (s Subject) backReferenceKey(id string) string {
	return backReferencePrefix(id) + strings.TrimPrefix(s.key(), ownPrefix)
}

func backReferencePrefix(id string) string { return ownPrefix + ownContext + "/" + id + "/" }

// subjectOf returns the subject that a key under ownPrefix, without that, belongs to, and what follows the subject's key,
// in parts. It is false for other keys.
func subjectOf(rest string) (s Subject, below []string, ok bool) {
	rest, ok = strings.CutSuffix(rest, "/")
	if !ok {
		return Subject{}, nil, false
	}
	switch parts := strings.Split(rest, "/"); {
	case parts[0] == ownGroup && len(parts) >= 5:
		s, below = GroupSubject(parts[1], parts[2], parts[3], parts[4]), parts[5:]
	case parts[0] == ownCluster && len(parts) >= 3:
		s, below = ClusterSubject(parts[1], parts[2]), parts[3:]
	default:
		return Subject{}, nil, false
	}
	return s, below, s.check() == nil
}

// subjectOfCluster returns the subject of a context's cluster, if the name of app and cluster make one.
func subjectOfCluster(app, cluster string) (Subject, bool) {
	provider, name, ok := splitPair(cluster)
	return ClusterSubject(provider, name), ok && app == NetworkIntents
}
