-- The user that copies the first node's data to a node that joins (MariaDB documentation,
-- "mariadb-backup SST Method").
CREATE USER 'sst'@'localhost' IDENTIFIED BY 'workshop';
GRANT RELOAD, PROCESS, LOCK TABLES, BINLOG MONITOR, REPLICATION CLIENT ON *.* TO 'sst'@'localhost';
