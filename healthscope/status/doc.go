// Package status owns the documents of the status REST API: what users asked for, what was applied, and what is really
// there, for a deployment intent group, for the network intents of a cluster, or for an instance of k8splugin. The API calls
// ParseQuery for the parameters of a request, Decode for what the contexts in etcd say, and New, which joins that with what
// the hub knows of the clusters. It must never decide about health, never report as present or well what cannot be seen, and
// never import a client, a logger, metrics or a context, nor read a clock.
//
// Default documents have the shape of EMCO's status design in its published version, with its words; health and what else
// goes beyond it come when they are asked for. A document carries source and last-seen for what is not current.
package status
