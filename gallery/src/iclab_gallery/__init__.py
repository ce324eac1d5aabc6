"""Papers of other groups, one file each; iclab finds them through the entry points of this distribution."""
