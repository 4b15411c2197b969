// Package kubevela owns the reading of what KubeVela, up to 1.8 and later, says in its Applications and in the labels and
// annotations of the objects that they apply. The scope and fleet controllers call it. It must never judge health by what
// KubeVela says of itself, and never import a client, a logger, metrics or a context, nor read a clock.
package kubevela
