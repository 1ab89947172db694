#!/bin/sh
set -eu
grep -v ',cancelled$$' /app/orders.csv > /app/valid.csv
