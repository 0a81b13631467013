#!/bin/sh
# Creates Tryton's tables in the empty database, and seeds them.
set -eu
echo secret > password
TRYTONPASSFILE=password trytond-admin -c trytond.conf -d shop -u sale --activate-dependencies --email admin@example.com
TRYTOND_CONFIG=trytond.conf /usr/bin/python3 seed.py
