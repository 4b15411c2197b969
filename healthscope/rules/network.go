package rules

import "github.com/healthscope/healthscope/healthscope"

// judgeService is the rule for Services: Ready, except for one of type
// LoadBalancer that has no address. An external IP is an address that its user
// has seen to.
func judgeService(o *object, verdict *healthscope.Result) {
	verdict.State = healthscope.Ready
	if o.text(o.spec, "spec.type") != "LoadBalancer" || hasAddress(o) {
		return
	}
	if addresses, _ := o.spec["externalIPs"].([]any); len(addresses) > 0 {
		return
	}
	verdict.State, verdict.Reason = healthscope.Pending, healthscope.ReasonLoadBalancerPending
	verdict.Message = "the load balancer has no address yet"
}

// judgeIngress is the rule for Ingresses: one without an address may well be
// served, as many ingress controllers never write one, so that is a warning.
func judgeIngress(o *object, verdict *healthscope.Result) {
	verdict.State = healthscope.Ready
	if !hasAddress(o) {
		verdict.Warning, verdict.Reason = true, healthscope.ReasonNoAddress
		verdict.Message = "the ingress has no address"
	}
}

// hasAddress says whether the status of a Service or an Ingress holds an address.
func hasAddress(o *object) bool {
	balancer := o.child(o.status, "status.loadBalancer")
	return len(o.children(balancer, "status.loadBalancer.ingress")) > 0
}
