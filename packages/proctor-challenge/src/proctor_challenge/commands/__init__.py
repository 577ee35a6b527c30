"""The commands of challenges: `proctor challenge …`."""
