package installation

import "context"

// Configure replaces what Options.Configuration has added to the configuration. Programs that run read theirs again by
// themselves, as far as they do that without a restart.
func (i *Installation) Configure(ctx context.Context, configuration string) error {
	i.options.Configuration = configuration
	if i.options.Helm != nil {
		return i.Upgrade(ctx, i.options.Values...)
	}
	return i.writeConfiguration()
}
