// Package kubevela reads what KubeVela, up to 1.8 and later, says in its Applications and in the labels and annotations of
// the objects that they apply. It is pure.
package kubevela
