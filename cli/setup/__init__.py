"""What is set up once, around a deployment: the GitHub App, the sign-in, one more target subscription."""
