package installation

import "context"

// Configure replaces what Options.Configuration has added to the configuration. Programs that run notice it: they take up
// health rules, and for other settings they end and are started again.
func (i *Installation) Configure(ctx context.Context, configuration string) error {
	i.options.Configuration = configuration
	if i.options.Helm != nil {
		return i.Upgrade(ctx, i.options.Values...)
	}
	return i.writeConfiguration()
}
