// Package status owns the documents of the status REST API. A document shows what users requested, what rsync applied, and what
// exists in the clusters, for a deployment intent group, for the network intents of a cluster, or for an instance of k8splugin.
// The API calls ParseQuery for the parameters of a request, Decode for the contexts in etcd, and New, which joins the contexts
// with the state of the clusters that the hub knows. The package must never judge the health of objects itself, and never report
// an object as present or healthy that cannot be read. It must not import a client, a logger, metrics or a context, nor read a clock.
//
// Default documents have the shape and the words of the published version of EMCO's status design. Health and other additions
// appear only on request. A document carries source and last-seen for facts that are not current.
package status
