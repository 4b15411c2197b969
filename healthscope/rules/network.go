package rules

import "github.com/healthscope/healthscope/healthscope"

// judgeService is the rule for Services: Ready, except for a Service of type LoadBalancer without an address. An external IP, which the user
// provides, counts as an address.
func judgeService(o *object, result *healthscope.Result) {
	result.State = healthscope.Ready
	if o.text(o.spec, "spec.type") != "LoadBalancer" {
		return
	}
	if o.addresses()+len(o.list(o.spec, "spec.externalIPs")) == 0 {
		result.State, result.Reason = healthscope.Pending, healthscope.ReasonLoadBalancerPending
		result.Message = "the load balancer has no address yet"
	}
}

// judgeIngress is the rule for Ingresses. An Ingress without an address only gets a warning: many ingress controllers never write an address.
func judgeIngress(o *object, result *healthscope.Result) {
	result.State = healthscope.Ready
	if o.addresses() == 0 {
		result.Warning, result.Reason = true, healthscope.ReasonNoAddress
		result.Message = "the ingress has no address"
	}
}

// addresses returns the number of addresses of a load balancer.
func (o *object) addresses() int {
	return len(o.children(o.child(o.status, "status.loadBalancer"), "status.loadBalancer.ingress"))
}

// judgeGateway is the rule for Gateways: Ready when Programmed, Failed when not
// Accepted. Before v1beta1 of the Gateway API, Gateways have the condition Ready instead of Programmed.
func judgeGateway(o *object, result *healthscope.Result) {
	accepted, programmed := o.condition("Accepted"), o.condition("Programmed")
	if !programmed.exists() {
		programmed = o.condition("Ready")
	}
	switch {
	case accepted.is("False") && !o.outdated(accepted):
		result.State, result.Reason, result.Message = healthscope.Failed, healthscope.ReasonNotAccepted, accepted.detail()
	case !programmed.exists():
		pendingNotObserved(result)
	case !o.judgeByCondition(result, programmed):
	case len(o.children(o.status, "status.addresses")) == 0:
		result.Warning, result.Reason = true, healthscope.ReasonNoAddress
		result.Message = "the gateway has no address"
	}
}

// judgeGatewayClass is the rule for GatewayClasses: Ready when Accepted, and Failed when not.
func judgeGatewayClass(o *object, result *healthscope.Result) {
	accepted := o.condition("Accepted")
	switch {
	case accepted.is("False") && !o.outdated(accepted):
		result.State, result.Reason, result.Message = healthscope.Failed, healthscope.ReasonNotAccepted, accepted.detail()
	case !accepted.exists():
		pendingNotObserved(result)
	default:
		o.judgeByCondition(result, accepted)
	}
}

// judgeRoute is the rule for the routes of the Gateway API, which have conditions for each parent: Failed when a parent does not accept the
// route, Ready when all parents accept it and resolve its references.
func judgeRoute(o *object, result *healthscope.Result) {
	parents := o.children(o.status, "status.parents")
	if len(parents) == 0 {
		pendingNotObserved(result)
		return
	}
	var pending *healthscope.Result
	for _, parent := range parents {
		list, _ := parent["conditions"].([]any)
		conditions := conditionsOf(list)
		accepted, resolved := findCondition(conditions, "Accepted"), findCondition(conditions, "ResolvedRefs")
		if accepted.is("False") && !o.outdated(accepted) {
			result.State, result.Reason, result.Message = healthscope.Failed, healthscope.ReasonNotAccepted, accepted.detail()
			return
		}
		var other healthscope.Result
		switch {
		case !accepted.exists():
			pendingNotObserved(&other)
		case o.judgeByCondition(&other, accepted) && resolved.exists():
			o.judgeByCondition(&other, resolved)
		}
		if other.State != healthscope.Ready && pending == nil {
			pending = &other
		}
	}
	result.State = healthscope.Ready
	if pending != nil {
		result.State, result.Reason, result.Message = pending.State, pending.Reason, pending.Message
		result.Warning = pending.Warning
	}
}
