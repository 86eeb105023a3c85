"""What an app is made of: tasks and queues by name, the sources of its settings, its workers and sinks."""
