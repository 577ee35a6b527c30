"""Training: judges that learn from rated answers, and answerers that are fine-tuned on a benchmark."""
