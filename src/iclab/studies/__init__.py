"""Studies of ours across papers: each is a file like a user's own, and has a command of its own."""
