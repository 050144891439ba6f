"""What streams have beyond the protocol: lists, details, records, schemas, profiles."""
