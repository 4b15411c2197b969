// Package probe owns the HTTP probes that scopes ask for: it finds Services by watches, and asks each through
// services/proxy of the API server of its cluster, on the connection that the fleet has to it. Package app sets it up,
// and the scope controller reads its reports through an interface of its own. It must never connect to a target itself,
// so that the API server audits every probe and lets it reach pods of the Service's namespace only.
//
// What a probe is, when it is made and what it says is decided in package healthscope/probe. Of the other controllers this package
// may import fleet only.
package probe
