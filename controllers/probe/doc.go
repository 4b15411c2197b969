// Package probe makes the HTTP probes that scopes ask for: it finds Services by watches, and asks each through services/proxy
// of the API server of its cluster, on the connection that the fleet has to it. So the controller itself connects to no
// target, and the API server, which audits every probe, lets it reach pods of the Service's namespace only.
//
// What a probe is, when it is made and what it says is decided in package healthscope/probe. The scope controller reads
// reports through an interface of its own, and does not import this package. Of the other controllers it may import fleet only.
package probe
