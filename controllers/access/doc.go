// Package access owns the questions to Kubernetes who the callers of the status REST server and of the metrics server
// are and what they may ask for: a TokenReview for each bearer token, and a SubjectAccessReview for each thing that is
// asked for. Package app calls it. It must never let a caller in without an answer of the API server, which it keeps for
// a short time.
package access
