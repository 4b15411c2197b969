// Package access owns the authentication and authorization of callers of the status REST server, the metrics server and
// the gRPC server of rsync: a TokenReview for each bearer token, and a SubjectAccessReview for each access. Package app
// calls it. It must never admit a caller without an answer of the API server, which it caches for a short time.
package access
