"""Papers of other groups, one file each; iclab finds them by the entry points of this distribution."""
