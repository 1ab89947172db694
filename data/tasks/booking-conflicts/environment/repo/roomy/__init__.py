"""Room bookings in one JSON file."""
